"""The Pythons of this machine that an environment can use."""

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.other_users import closed_part
from tenv.core.user_folders import user_home
from tenv.core.versions import Version

_SECONDS = 20.0
_NAME = re.compile(r"\w[\w.+-]*(/envs/\w[\w.+-]*)?")
_RELEASE = re.compile(r"\d+(\.\d+)*", re.ASCII)
_ASK = """\
import sys, sysconfig
usual = not sysconfig.get_config_var("Py_GIL_DISABLED")
print(sys.implementation.name if usual else "free-threaded", "%d.%d.%d" % sys.version_info[:3], sep="\\n")
print(sysconfig.get_path("include"))
print(getattr(sys, "_base_executable", sys.executable))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python on this machine."""

    path: Path
    """Its program; for a virtual environment or a shim, the real one."""
    version: Version
    """Its version."""
    headers: bool
    """Whether it has ``Python.h``, which compiling an extension requires."""


def search(minors: Sequence[str], environment: Mapping[str, str], *, for_others: bool = False) -> list[Interpreter]:
    """Return Pythons of this machine with one of some minors, best first.

    Pythons with ``Python.h`` come first, since building PyTorch requires it; then higher minors. The search ends at the
    first that has both, so it starts few programs. With `for_others`, a Python in a closed folder does not count.
    """
    others: list[Interpreter] = []
    for programs in _programs(minors, environment):
        there = [program for program in programs if not (for_others and closed_part(program))]
        for python in filter(None, (inspect(program, environment) for program in there)):
            if python.version.major_minor not in minors or (for_others and closed_part(python.path)):
                continue
            if python.headers:
                return [python, *others]
            others.append(python)
    return others


def search_unselected(minor: str, environment: Mapping[str, str]) -> Interpreter | None:
    """Return a Python of a minor among all versions of pyenv, best with headers; None without one.

    `tenv host` lists them. One that pyenv does not select is used where the other choice is a download.
    """
    folders = [Path(folder) for folder in environment.get("PATH", os.defpath).split(os.pathsep) if folder]
    versions = [folder.parent / "versions" for folder in folders if folder.name == "shims"]
    programs = [one for folder in versions for one in sorted(folder.glob(f"*/bin/python{minor}"), reverse=True)]
    found = [
        python for one in programs if (python := inspect(one, environment)) and python.version.major_minor == minor
    ]
    return max(found, key=lambda python: python.headers, default=None)


def _programs(minors: Sequence[str], environment: Mapping[str, str]) -> Iterator[list[Path]]:
    """Yield candidate programs for each minor, highest first; last the programs without a minor in their name."""
    folders = [Path(folder) for folder in environment.get("PATH", os.defpath).split(os.pathsep) if folder]
    data = environment.get("XDG_DATA_HOME") or user_home() / ".local/share"
    managed = Path(environment.get("UV_PYTHON_INSTALL_DIR") or Path(data) / "uv/python")
    suffix = ".exe" if sys.platform == "win32" else ""
    own = Path(getattr(sys, "_base_executable", sys.executable))  # tenv's own Python, which PATH need not have
    seen: set[str] = set()
    behind = partial(_behind_shim, environment=environment)

    def fresh(programs: Iterable[Path]) -> list[Path]:
        there = (
            found
            for program in programs
            if os.access(program, os.X_OK) and program.is_file()
            for found in behind(program)
        )
        new = {os.path.realpath(program): program for program in there}
        new = {real: program for real, program in new.items() if real not in seen}
        seen.update(new)
        return list(new.values())

    for minor in sorted(minors, key=Version, reverse=True):
        named = [folder / f"python{minor}{suffix}" for folder in folders]
        ours = [own] if minor == f"3.{sys.version_info.minor}" else []
        yield fresh([*named, *sorted(managed.glob(f"cpython-{minor}.*/bin/python{minor}")), *ours])
    yield fresh(folder / f"{name}{suffix}" for name in ("python3", "python") for folder in folders)


def _behind_shim(program: Path, environment: Mapping[str, str]) -> list[Path]:
    """Return the programs behind a shim of pyenv; any other program is returned unchanged.

    A shim is a script that starts dozens of programs (0.2 s) to find the selected versions, and often reports only that
    none of them has the program. So tenv reads the selection from pyenv's files; `system` means the rest of PATH.
    """
    root = program.parent.parent
    if program.parent.name != "shims" or not (root / "versions").is_dir():
        return [program]
    folders = (_version_folder(root / "versions", name) for name in _chosen(root, environment))
    programs = [folder / "bin" / program.name for folder in folders if folder]
    return [path for path in programs if os.access(path, os.X_OK)]


def _version_folder(versions: Path, name: str) -> Path | None:
    """Return the folder of a version of pyenv; `3.11` means its highest release. None without one."""
    for plain in (name, name.removeprefix("python-")):
        if not _NAME.fullmatch(plain):
            continue
        if (versions / plain).is_dir():
            return versions / plain
        releases = [path for path in versions.glob(f"{plain}.*") if _RELEASE.fullmatch(path.name)]
        if releases:
            return max(releases, key=lambda path: Version(path.name))
    return None


def _chosen(root: Path, environment: Mapping[str, str]) -> list[str]:
    """Return the selected versions: of a variable, of the working folder or one above it, or of the user.

    The first existing file decides, even if it names no version. PYENV_DIR comes before the working folder and does not
    replace it (pyenv's version-file and version-file-read).
    """
    if named := environment.get("PYENV_VERSION"):
        return named.split(":")
    starts = (Path(environment.get("PYENV_DIR") or ".").absolute(), Path.cwd())
    folders = (folder for start in starts for folder in (start, *start.parents))
    for file in (*(folder / ".python-version" for folder in folders), root / "version"):
        with contextlib.suppress(OSError):
            rows = (line.split() for line in file.read_text("utf-8", "replace").splitlines())
            return [name for row in rows if row and not row[0].startswith("#") for name in row[0].split(":")]
    return []


def inspect(program: Path, environment: Mapping[str, str]) -> Interpreter | None:
    """Return the version and headers of a Python program; None unless it is a working, default build of CPython."""
    clean = {name: value for name, value in environment.items() if not name.startswith("PYTHON")}
    done = process.run([str(program), "-I", "-S", "-c", _ASK], environment=clean, timeout=_SECONDS)
    if isinstance(done, process.Missing) or done.status:
        return None
    lines = done.stdout.splitlines()
    if len(lines) != 4 or lines[0] != "cpython":  # noqa: PLR2004 (four lines)
        return None
    return Interpreter(Path(lines[3]), Version(lines[1]), (Path(lines[2]) / "Python.h").is_file())
