"""The Pythons of a machine that an environment may be made with, each with whether its headers are there.

A program's name has the minor, and ``Python.h`` stands below its prefix; a script in place of a Python (a shim of asdf,
a wrapper) is run. ``create`` chooses among the same programs: ``pythonX.Y`` on PATH, the Pythons of uv and pyenv, and
the Python that runs tenv.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tenv.core.files import entries_of, open_regular
from tenv.core.versions import Version
from tenv.host.field import HostField, Lane
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.places import Places, environment_of, exists, is_file, is_folder
from tenv.host.report import FoundPython

_PROGRAM = re.compile(r"python(3\.\d{1,2})(d|-dbg|-debug|)")
"""A debug build has a name of its own in Debian (python3.11-dbg) and Fedora (python3.11d)."""
_ASK = 'import sys, sysconfig; print("%d.%d" % sys.version_info[:2], sysconfig.get_path("include"))'
_ABIS = ("", "m", "d", "dm")
"""The letter after the minor in the name of the headers' folder: ``m`` up to Python 3.7, ``d`` in debug builds."""


def probe(places: Places) -> Fact[tuple[FoundPython, ...]] | Missing:
    """Return the Pythons of a machine, the highest minor first; `Missing` where there is none."""
    found: dict[str, FoundPython] = {}
    for program in _programs(places):
        real = os.path.realpath(program)
        if real in found or not os.access(real, os.X_OK) or environment_of(program) is not None:
            continue
        if python := _asked(real, places) if _is_script(real) else _seen(real):
            found[real] = python
    if not found:
        return Missing("no program `python3.N` was found", ReasonKind.NONE)
    ordered = sorted(found.values(), key=lambda python: python.version, reverse=True)
    return Fact(tuple(ordered), "python3.N on PATH, of uv and of pyenv", OriginKind.SEARCH)


def _programs(places: Places) -> Iterator[Path]:
    for folder in places.folders():
        versions = folder.parent / "versions"
        if folder.name == "shims" and is_folder(versions):  # scripts of pyenv, beside the programs that they start
            yield from (program for home in entries_of(versions) for program in _in(home / "bin"))
        else:
            yield from _in(folder)
    home = places.environ.get("HOME", "")
    data = places.environ.get("XDG_DATA_HOME") or (f"{home}/.local/share" if home else "")
    managed = places.environ.get("UV_PYTHON_INSTALL_DIR") or (f"{data}/uv/python" if data else "")
    for folder in entries_of(Path(managed)) if managed else ():
        if folder.name.startswith("cpython-"):
            yield from _in(folder / "bin")
    if places.root == Path("/"):
        yield Path(getattr(sys, "_base_executable", sys.executable))


def _in(folder: Path) -> Iterator[Path]:
    plain = ("python3", "python")
    yield from (path for path in entries_of(folder) if _PROGRAM.fullmatch(path.name) or path.name in plain)


def _is_script(program: str) -> bool:
    try:
        with open_regular(program) as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _seen(program: str) -> FoundPython | None:
    """Return a Python by its name; None if the name is none of a Python's minor."""
    match = _PROGRAM.fullmatch(os.path.basename(program))  # noqa: PTH119 (a text)
    if match is None:
        return None
    path, debug = Path(program), bool(match[2]) or _is_debug(Path(program), match[1])
    return FoundPython(program, Version(match[1]), _has_headers(path, match[1], debug=debug), debug)


def _asked(program: str, places: Places) -> FoundPython | None:
    """Ask a script that stands for a Python; None if it is none, or gives no answer in time."""
    done = places.run(program, "-I", "-S", "-c", _ASK)
    if isinstance(done, Missing) or done.status:
        return None
    version, _, include = done.stdout.strip().partition(" ")
    if not re.fullmatch(r"3\.\d+", version):
        return None
    return FoundPython(program, Version(version), is_file(Path(include) / "Python.h"))


def header_of(prefix: Path, minor: str, abis: Iterable[str] = ("", "m", "t")) -> Path | None:
    """Return the ``Python.h`` of a minor below a prefix; None where there is none.

    Args:
        prefix: The folder above ``bin`` and ``include``; on Windows the Python's own.
        minor: Such as ``3.12``.
        abis: The letters after the minor that are accepted; ``t`` is a Python without a global lock.
    """
    named = (prefix / f"include/python{minor}{abi}/Python.h" for abi in abis)
    return next((file for file in (*named, prefix / "Include/Python.h") if is_file(file)), None)


def _has_headers(program: Path, minor: str, *, debug: bool) -> bool:
    abis = [abi for abi in _ABIS if abi.startswith("d") is debug]
    return header_of(program.parent.parent, minor, abis) is not None


def _is_debug(program: Path, minor: str) -> bool:
    """Return whether a Python of the plain name is a debug build, as CPython's own make leaves it.

    The headers beside it then belong to a debug build alone, and no program is named as one.
    """
    named = any(exists(program.with_name(f"python{minor}{word}")) for word in ("d", "-dbg", "-debug"))
    alone = _has_headers(program, minor, debug=True) and not _has_headers(program, minor, debug=False)
    return alone and not named


PYTHONS = HostField(
    label="pythons",
    meaning="the Pythons that an environment may be made with, and whether their headers are there",
    form="a list of `path`, `version`, `headers`, `debug`",
    lane=Lane.ALONE,
    probe=lambda scan: probe(scan.places),
    show=lambda found: [
        f"{python.version}  {python.path}{'  (debug build)' if python.debug else ''}"
        f"{'' if python.headers else '  (without Python.h)'}"
        for python in found
    ],
)
