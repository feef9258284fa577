"""The Pythons of this machine that an environment may be made with."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tenv import process
from tenv.versions import Version

__all__ = ["Interpreter", "inspect", "search"]

_SECONDS = 20.0
_ASK = """\
import sys, sysconfig
usual = not sysconfig.get_config_var("Py_GIL_DISABLED")
print(sys.implementation.name if usual else "free-threaded", "%d.%d.%d" % sys.version_info[:3], sep="\\n")
print(sysconfig.get_path("include"))
print(getattr(sys, "_base_executable", sys.executable))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python on this machine.

    Attributes:
        path: Its program; of a virtual environment or a shim, the one behind it.
        version: Its version.
        headers: Whether ``Python.h`` is there, without which no extension can be compiled.
    """

    path: Path
    version: Version
    headers: bool


def search(minors: Sequence[str], environment: Mapping[str, str]) -> list[Interpreter]:
    """Return Pythons of this machine of the minors that are given, best first.

    Best is the highest minor; but one with ``Python.h`` comes before any without, since PyTorch can't be built
    with the latter. The search ends with the first that has both, so that few programs are started.
    """
    others: list[Interpreter] = []
    for programs in _programs(minors, environment):
        for python in filter(None, (inspect(program, environment) for program in programs)):
            if python.version.major_minor not in minors:
                continue
            if python.headers:
                return [python, *others]
            others.append(python)
    return others


def _programs(minors: Sequence[str], environment: Mapping[str, str]) -> Iterator[list[Path]]:
    """Yield the programs that may be Pythons of each minor, highest first, and last those that do not say."""
    folders = [Path(folder) for folder in environment.get("PATH", os.defpath).split(os.pathsep) if folder]
    data = environment.get("XDG_DATA_HOME") or Path.home() / ".local/share"
    managed = Path(environment.get("UV_PYTHON_INSTALL_DIR") or Path(data) / "uv/python")
    suffix = ".exe" if sys.platform == "win32" else ""
    own = Path(getattr(sys, "_base_executable", sys.executable))  # ours may fit where PATH names none
    seen: set[str] = set()

    def fresh(programs: Iterable[Path]) -> list[Path]:
        there = (program for program in programs if os.access(program, os.X_OK) and program.is_file())
        new = {os.path.realpath(program): program for program in there}
        new = {real: program for real, program in new.items() if real not in seen}
        seen.update(new)
        return list(new.values())

    for minor in sorted(minors, key=Version, reverse=True):
        named = [folder / f"python{minor}{suffix}" for folder in folders]
        ours = [own] if minor == f"3.{sys.version_info.minor}" else []
        yield fresh([*named, *sorted(managed.glob(f"cpython-{minor}.*/bin/python{minor}")), *ours])
    yield fresh(folder / f"{name}{suffix}" for name in ("python3", "python") for folder in folders)


def inspect(program: Path, environment: Mapping[str, str]) -> Interpreter | None:
    """Ask a Python for its version and its headers; None when it is no working CPython of the usual build."""
    clean = {name: value for name, value in environment.items() if not name.startswith("PYTHON")}
    done = process.run([str(program), "-I", "-c", _ASK], environment=clean, timeout=_SECONDS)
    if isinstance(done, process.Missing) or done.status:
        return None
    lines = done.stdout.splitlines()
    if len(lines) != 4 or lines[0] != "cpython":  # noqa: PLR2004 (four lines)
        return None
    return Interpreter(Path(lines[3]), Version(lines[1]), (Path(lines[2]) / "Python.h").is_file())
