"""Build the wheel and the sdist of a release, the same bytes wherever and whenever it runs.

    python scripts/release.py FOLDER

The version is that of the tag at HEAD (`v1.2.3`); without one, that in the source. The tree of git is copied, and the
version is written into the copy, so that the sdist, what is built from it and `tenv --version` agree.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.version import Version

__all__ = ["build", "tagged_version"]

CHECKOUT = Path(__file__).parents[1]
GIT = shutil.which("git") or "git"


def _git(checkout: Path, *words: str) -> str:
    done = subprocess.run([GIT, *words], cwd=checkout, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def tagged_version(checkout: Path) -> str:
    """Return the version of the tag at HEAD; empty without a tag of the form `v1.2.3`.

    Raises:
        SystemExit: HEAD has tags of several versions, or files differ from the tag.
    """
    names = [name[1:] for name in _git(checkout, "tag", "--points-at", "HEAD", "v[0-9]*").split()]
    if len(names) > 1:
        raise SystemExit(f"HEAD has several versions: {', '.join(names)}")
    if names and (changed := _git(checkout, "status", "--porcelain", "--untracked-files=no")):
        raise SystemExit(f"files differ from the tag v{names[0]}:\n{changed}")
    return str(Version(names[0])) if names else ""


def build(checkout: Path, folder: Path, version: str = "", kinds: tuple[str, ...] = ("sdist", "wheel")) -> list[Path]:
    """Build a checkout into a folder.

    Args:
        checkout: The checkout.
        folder: The folder.
        version: The version; empty for that in the source.
        kinds: What is built.

    Returns:
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        tree, made = Path(name) / "tree", Path(name) / "made"
        for file in filter(None, _git(checkout, "ls-files", "-z").split("\0")):
            if (checkout / file).is_file():
                (tree / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(checkout / file, tree / file)
        source = tree / "src" / "tenv" / "__init__.py"
        if version:
            source.write_text(re.sub(r'__version__ = ".*"', f'__version__ = "{version}"', source.read_text()))
        if commit := _git(checkout, "rev-parse", "HEAD").strip():
            (source.parent / "commit.txt").write_text(f"{commit}\n", encoding="ascii")
        words = [sys.executable, "-m", "hatchling", "build", "-d", str(made)]
        words += [word for kind in kinds for word in ("-t", kind)]
        epoch = _git(checkout, "log", "-1", "--format=%ct").strip() or "1580601600"
        subprocess.run(
            words, cwd=tree, env={**os.environ, "SOURCE_DATE_EPOCH": epoch}, check=True, stdout=subprocess.DEVNULL
        )
        return [Path(shutil.move(path, folder / path.name)) for path in sorted(made.iterdir())]


if __name__ == "__main__":
    for made in build(CHECKOUT, Path(sys.argv[1]), tagged_version(CHECKOUT)):
        print(made)
