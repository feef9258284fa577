"""Tools that debug CPython itself: the host's debug build of Python, and a gdb that reads its frames.

Distributions split both from the usual packages. Debian's and Ubuntu's ``python3-dbg`` installs ``python3.11-dbg`` with
its headers, symbols and ``python-gdb.py``; Fedora's ``python3-debug`` installs ``python3.11d``.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tenv.core.versions import Version
from tenv.host.interface import Missing
from tenv.host.places import Places, environment_of
from tenv.sources.system.interface import Lack, Tool, ToolRequest, patterns

_PYTHONS = re.compile(r"python3(\.\d+)?(d|-dbg|-debug|)")
_ASK = """\
import sys, sysconfig
value = sysconfig.get_config_var
print("%d.%d.%d" % sys.version_info[:3], int(bool(value("Py_DEBUG"))), int(bool(value("Py_GIL_DISABLED"))))
print(getattr(sys, "_base_executable", sys.executable))
print(sysconfig.get_path("include"))
"""
_LINES = 3
_GDB_VERSION = re.compile(r"^GNU gdb .*?(\d+(?:\.\d+)+)\S*$", re.MULTILINE)
_HELPERS = ("usr/share/gdb/auto-load/usr/bin/{name}-gdb.py", "usr/share/gdb/auto-load/usr/lib*/**/*{name}*-gdb.py")


def find_debug_python(wanted: ToolRequest) -> Tool | Lack:
    """Return the debug build of CPython that suits: the one taken before, else the highest version."""
    found, refused = [], []
    for program in _programs(wanted):
        answer = _inspect_python(wanted, program)
        if isinstance(answer, Tool):
            found.append(answer)
        elif answer:
            refused.append(answer)
    if found:
        return max(found, key=lambda tool: (str(tool.path) == wanted.kept, Version(tool.version)))
    install = "apt install python3-dbg (Debian, Ubuntu) or dnf install python3-debug (Fedora)"
    looked = "python3*-dbg, python3*-debug and python3.*d on PATH and in /usr/bin, /usr/local/bin"
    return wanted.lack(refused, looked, install)


def _programs(wanted: ToolRequest) -> Iterator[Path]:
    """Yield the programs that may be debug builds, each file once."""
    places, seen = wanted.places, set()
    kept = [Path(wanted.kept)] if wanted.kept else []
    folders = [*places.folders(), *(places.root / name for name in ("usr/bin", "usr/local/bin"))]
    for program in (*kept, *(path for folder in folders for path in _named(folder))):
        real = program.resolve()
        if real not in seen and program.is_file():
            seen.add(real)
            yield program


def _named(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("python3*") if _PYTHONS.fullmatch(path.name))


def _inspect_python(wanted: ToolRequest, program: Path) -> Tool | str:
    """Return a debug build, why one won't do, or an empty string for a Python of the usual build."""
    if environment_of(program):
        return ""
    done = wanted.places.run(str(program), "-I", "-S", "-c", _ASK)
    lines = [] if isinstance(done, Missing) or done.status else done.stdout.splitlines()
    if len(lines) != _LINES:
        return ""
    version, debug, free_threaded = lines[0].split()
    if debug != "1":
        return ""
    path, headers = Path(lines[1]).resolve(), Path(lines[2]) / "Python.h"  # gdb finds its helper by the real name
    reasons = {
        "is free-threaded, and no wheel of the usual build loads in it": free_threaded == "1",
        f"{version} is not {wanted.accepted}": Version(version) not in wanted.accepted,
        f"{headers} is missing, without which no extension can be compiled": not headers.is_file(),
    }
    if reason := next((text for text, true in reasons.items() if true), ""):
        return f"{path}: {reason}"
    helpers = patterns(wanted.places.root, *(pattern.format(name=path.name) for pattern in _HELPERS))
    beside = patterns(path.parent, f"{path.name}-gdb.py")  # where CPython's own `make` puts it
    notes = () if helpers or beside else (f"{path}: there is no python-gdb.py of it, so gdb shows no Python frames",)
    return wanted.tool(
        path,
        version,
        program.name,
        roles={"python": str(path)},
        notes=notes,
        files=(path, headers, *helpers, *beside),
        watched=(path,),
    )


def find_gdb(wanted: ToolRequest) -> Tool | Lack:
    """Return the first gdb on PATH, or in the usual folders, that suits and runs Python scripts."""
    places, refused = wanted.places, []
    folders = [*places.folders(), *(places.root / name for name in ("usr/bin", "usr/local/bin"))]
    kept = [Path(wanted.kept)] if wanted.kept else []
    for program in dict.fromkeys((*kept, *(folder / "gdb" for folder in folders))):
        if not program.is_file():
            continue
        answer = _inspect_gdb(wanted, program)
        if isinstance(answer, Tool):
            return answer
        refused.append(answer)
    install = "apt install gdb (Debian, Ubuntu) or dnf install gdb (Fedora)"
    return wanted.lack(refused, "gdb on PATH and in /usr/bin", install)


def _inspect_gdb(wanted: ToolRequest, program: Path) -> Tool | str:
    version = _gdb_version(wanted.places, program)
    if isinstance(version, str):
        return f"{program}: {version}"
    if version not in wanted.accepted:
        return f"{program}: {version} is not {wanted.accepted}"
    done = wanted.places.run(str(program), "-nx", "-batch", "-ex", "python print(6 * 7)", LC_ALL="C")
    if isinstance(done, Missing) or done.stdout.strip() != "42":
        return f"{program}: was built without Python, so it shows no Python frames"
    return wanted.tool(program, version, "PATH", roles={"gdb": str(program)}, files=(program,), watched=(program,))


def _gdb_version(places: Places, program: Path) -> Version | str:
    """Return the version that a gdb names, or why it names none."""
    done = places.run(str(program), "--version", LC_ALL="C")
    if isinstance(done, Missing):
        return done.reason
    match = _GDB_VERSION.search(done.stdout)
    return Version(match[1]) if match else "`--version` prints no version"
