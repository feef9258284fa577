"""Install, extend, upgrade and uninstall tenv in a fresh Debian root, by pip, pipx and uv, and print what each leaves.

    python scripts/fresh_root.py ROOT WHEELS >docs/guide/installing.md

ROOT is a folder that debootstrap made (as root), with python3-venv, python3-pip, pipx and ca-certificates. WHEELS is a
folder with the wheels that tenv, its extra `conda-lock`, pip, uv and pipx (setuptools, wheel) need for the Python of
ROOT, from `pip download`; ROOT has uv in /opt/uv/bin. The script adds two versions of tenv, serves the folder as an
index on 127.0.0.1, and runs everything by chroot. What is installed comes from that index alone.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
sys.path[:0] = [str(CHECKOUT)]

from scripts.release import build  # noqa: E402 (the checkout is no installed package)
from tests.support.fakes import Index  # noqa: E402 (as above)

LOCAL = "/root/.local/bin"
OLDER, NEWER = "0.1.0", "0.1.1"
EXTENDED = "tenv export conda-lock cuda121 -o /tmp/x"
WAYS: dict[str, tuple[str, str, str, str, str]] = {
    "pip": (
        "python3 -m venv /root/venv && /root/venv/bin/pip freeze --all > /root/before.txt",
        "/root/venv/bin/pip install -q torch-tenv",
        "/root/venv/bin/pip install -q --upgrade torch-tenv",
        "/root/venv/bin/pip uninstall -q -y $(/root/venv/bin/pip freeze --all --exclude pip --exclude setuptools)",
        "/root/venv/bin",
    ),
    "pipx": ("true", "pipx install torch-tenv", "pipx upgrade torch-tenv", "pipx uninstall torch-tenv", LOCAL),
    "uv tool": (
        "true",
        "uv tool install -q torch-tenv",
        "uv tool upgrade torch-tenv",
        "uv tool uninstall torch-tenv",
        LOCAL,
    ),
}
"""By the way: the commands that prepare, install the older version, upgrade and uninstall; the program's folder."""

PROJECT = """\
mkdir -p /root/project/manifests && cd /root/project && cat > manifests/mine.toml <<END
platforms = ["linux-64"]
python = ">=3.11,<3.12"
[pypi-dependencies]
click = "*"
END
tenv lock -q mine && tenv create -q --no-check mine"""
USE = "cd /root/project && tenv run mine -- python -c 'import click; print(click.__name__)'"
CLEAR = "cd /root/project && tenv remove -q mine && tenv clean -q --all"

OF_INSTALLERS = (
    "/root/.local/pipx",
    "/root/.cache/pip",
    "/root/.local/share/uv",
    "/root/.cache/uv",
    "/root/.local/state",
)
"""Where pip, pipx and uv keep logs and caches of their own."""


class Root:
    """A Debian root in which commands run by chroot."""

    def __init__(self, folder: Path, index: str) -> None:
        self.folder = folder
        self.variables = {
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "COLUMNS": "100",
            "PIP_INDEX_URL": index,
            "UV_DEFAULT_INDEX": index,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
        }

    def run(self, command: str, path: str, *, fails: bool = False) -> str:
        """Run a command of bash and print it as in a session; return what it printed."""
        variables = {**self.variables, "PATH": f"{path}:/opt/uv/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        words = ["chroot", str(self.folder), "/bin/bash", "-c", command]
        done = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        print(f"$ {command}")
        shown = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", said)
        print(shown, end="" if shown.endswith("\n") or not shown else "\n")
        if (done.returncode != 0) is not fails:
            raise SystemExit(f"{command}: status {done.returncode}")
        return said

    def files(self) -> set[str]:
        """Return the files of the root, without those that the system keeps in motion."""
        return set(self._walk())

    def _walk(self) -> Iterator[str]:
        for above, _, names in os.walk(self.folder):
            here = "/" + os.path.relpath(above, self.folder).removeprefix(".")
            if not here.startswith(("/proc", "/sys", "/dev", "/opt/uv")):
                yield from (f"{here}/{name}".replace("//", "/") for name in names if not name.endswith(".pyc"))


def left(root: Root, before: set[str], named: str) -> None:
    """Print the folders with new files, with their number; each is named by `tenv info` or of an installer."""
    counts: dict[str, int] = {}
    own = sorted(set(re.findall(r"/root/[^\s(]+", named)), key=len, reverse=True)
    for name in root.files() - before:
        if name.startswith(("/tmp/", "/root/project/")):  # noqa: S108 (of the root; what the session itself wrote)
            continue
        place = next((folder for folder in (*own, *OF_INSTALLERS) if name.startswith(f"{folder}/")), name)
        counts[place] = counts.get(place, 0) + 1
    print("left, outside the project:" if counts else "left, outside the project: nothing")
    for place, count in sorted(counts.items()):
        if place not in (*own, *OF_INSTALLERS):
            raise SystemExit(f"{place} is left and nothing names it")
        whose = "named by `tenv info`" if place in own else "of the installer"
        print(f"  {place}: {count} files, {whose}")


def session(root: Root, way: str, newer: Path, wheels: Path) -> None:
    """Run the whole life of an installation in one way; the newer version comes to the index before the upgrade."""
    prepare, install, upgrade, uninstall, path = WAYS[way]
    print(f"\n## {way}\n\n```text")
    root.run(prepare, path)
    before = root.files()
    root.run(install, path)
    root.run("tenv --version", path)
    said = root.run(EXTENDED, path, fails=True)
    hint = re.search(r"`([^`]+)` installs it", said)
    if hint is None:
        raise SystemExit(f"{way}: no hint that installs the extra")
    root.run(f"{hint[1]} >/tmp/log 2>&1 || (cat /tmp/log; false)", path)
    root.run(f"{EXTENDED} --quiet && ls /tmp/x", path)
    root.run(PROJECT, path)
    served = Path(shutil.copy(newer, wheels))
    root.run(upgrade, path)
    served.unlink()
    root.run("tenv --version", path)
    root.run(USE, path)
    named = root.run("tenv info", path)
    root.run(CLEAR, path)
    root.run(uninstall, path)
    root.run("command -v tenv", path, fails=True)
    left(root, before, named)
    print("```")
    for name in ("root/venv", "root/.local", "root/.cache", "root/.config", "root/project", "tmp/x"):
        shutil.rmtree(root.folder / name, ignore_errors=True)


def main(folder: Path, wheels: Path) -> None:
    """Run all ways and print the page."""
    aside = wheels.with_name("newer")
    build(CHECKOUT, wheels, OLDER, ("wheel",))
    build(CHECKOUT, aside, NEWER, ("wheel",))
    (newer,) = aside.glob("*.whl")
    with Index(wheels) as index:
        root = Root(folder, index.url)
        print(HEAD, end="")
        for way in WAYS:
            session(root, way, newer, wheels)


HEAD = """\
# Installing, as recorded

`scripts/fresh_root.py` made this page, in a fresh Debian 12 from an index on 127.0.0.1. Each way installs tenv, follows
the hint that tenv prints for an extra, makes an environment, upgrades to a second version, uses the environment again,
removes it, empties the caches and uninstalls. At the end stand the folders with files that were not there before.
"""

if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
