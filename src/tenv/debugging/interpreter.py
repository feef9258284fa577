"""The Python behind a program: whether gdb can read its frames, and the traps that change its imports.

gdb's `py-bt` needs two things: the script `python-gdb.py` of CPython (https://docs.python.org/3/howto/gdb_helpers.html)
and the debug information of the file that holds the interpreter. A release build with both will do.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.elf import ElfFaultError, open_elf

_PYTHON = re.compile(r"(?:lib)?python(?P<minor>\d+\.\d+)?[dt]*(?:\.so[.\d]*)?")
_DEBUG_BYTES = 1 << 16
"""Debug information of an interpreter has megabytes; the start files of the C library bring hundreds of bytes."""

_SHEBANG_BYTES = 1024


@dataclass(frozen=True, slots=True)
class DebuggedPython:
    """A Python as a debugger sees it."""

    program: Path
    """The program as it is started; in a virtual environment, a link."""
    real: Path
    """The file that the link leads to."""
    minor: str
    """Its minor version, such as ``3.11``; empty if no file name has it."""
    core: Path
    """The file with the interpreter's code: the program, or the library that it links."""
    symbols: Path | None
    """The file with the debug information of `core`, or None."""
    script: Path | None
    """CPython's `python-gdb.py` for it, or None."""
    loads: bool
    """Whether gdb loads the script by itself, once the folder is declared safe."""

    @property
    def frames(self) -> bool:
        """Whether gdb's own `py-bt` can show the frames."""
        return bool(self.symbols and self.script)

    def lacks(self) -> str:
        """Return the missing part of `py-bt`, as a noun phrase; empty if none is missing."""
        missing = [] if self.symbols else [f"debug information of {self.core}"]
        missing += [] if self.script else ["the script python-gdb.py"]
        return " and ".join(missing)


def interpreter_of(program: Path) -> list[str]:
    """Return the words that run a program's file when it is a script (its `#!` line), and none when it is a binary.

    The words of `/usr/bin/env NAME` are those after it. The first line that pip writes for a folder with a long name
    is `#!/bin/sh`, and the second one holds the Python.
    """
    try:
        with program.open("rb") as file:
            start = file.read(_SHEBANG_BYTES)
    except OSError:
        return []
    if not start.startswith(b"#!"):
        return []
    first, _, rest = os.fsdecode(start[2:]).partition("\n")
    if match := re.match(r"'''exec' \"?(?P<python>[^\"\n]+?)\"? \"\$0\" \"\$@\"", rest):
        return [match["python"]]
    words = first.split(None, 1)
    if words and Path(words[0]).name == "env":
        return [word for word in " ".join(words[1:]).split() if word != "-S"]
    return [word.strip() for word in words]


def describe_interpreter(program: Path, root: Path = Path("/")) -> DebuggedPython | None:
    """Return the Python that a program is; None when it is something else.

    Args:
        program: The program's file or a link to it.
        root: Where the system's folders stand.
    """
    real = Path(os.path.realpath(program))
    match = _PYTHON.fullmatch(real.name)
    if not match:
        return None
    core = _core(real, root)
    named = match["minor"] or ((found := _PYTHON.fullmatch(core.name)) and found["minor"]) or ""
    script, loads = _script(real, core, named, root)
    return DebuggedPython(program, real, named, core, symbols_of(core, root), script, loads)


def _core(real: Path, root: Path) -> Path:
    """Return the library that holds the interpreter of a program that links one, else the program."""
    needed, paths = _links(real)
    names = [name for name in needed if name.startswith("libpython") and name != "libpython3.so"]
    origin = str(real.parent)
    own = [Path(path.replace("$ORIGIN", origin).replace("${ORIGIN}", origin)) for path in paths]
    system = [root / "usr/local/lib", root / "usr/lib64", root / "usr/lib", *sorted(root.glob("usr/lib/*-linux-gnu"))]
    for name in names:
        for folder in (*own, real.parent.parent / "lib", *system):
            if (folder / name).is_file():
                return Path(os.path.realpath(folder / name))
    return real


def _links(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the libraries that a file needs and the folders that it names for them."""
    try:
        with open_elf(path) as elf:
            return elf.needed, (*elf.rpath, *elf.runpath)
    except (OSError, ElfFaultError):
        return (), ()


def symbols_of(path: Path, root: Path = Path("/")) -> Path | None:
    """Return the file with the debug information of a program or a library, as gdb would find it; None without one."""
    try:
        with open_elf(path) as elf:
            if sum(row.size for row in elf.sections if row.name in (".debug_info", ".zdebug_info")) > _DEBUG_BYTES:
                return path
            build, name = elf.build_id, os.fsdecode(elf.section(".gnu_debuglink").split(b"\0")[0])
    except (OSError, ElfFaultError):
        return None
    return next((found for found in _separate(path, build, name, root) if found.is_file()), None)


def _separate(path: Path, build: str, name: str, root: Path) -> Iterator[Path]:
    """Yield where debug information that was taken out of a file may stand (gdb's manual, Separate Debug Files)."""
    debug = root / "usr/lib/debug"
    if re.fullmatch(r"[0-9a-f]{4,}", build):
        yield debug / ".build-id" / build[:2] / f"{build[2:]}.debug"
        cache = os.environ.get("DEBUGINFOD_CACHE_PATH") or str(Path.home() / ".cache" / "debuginfod_client")
        yield Path(cache) / build / "debuginfo"
    if name and "/" not in name:
        yield path.parent / name
        yield path.parent / ".debug" / name
        yield debug / path.parent.relative_to("/") / name


def _script(real: Path, core: Path, minor: str, root: Path) -> tuple[Path | None, bool]:
    """Return CPython's script for gdb, and whether gdb loads it by itself."""
    beside = [path.with_name(f"{path.name}-gdb.py") for path in (core, real)]
    places = (root / "usr/share/gdb/auto-load", root / "usr/lib/debug")
    shared = [place / path.relative_to("/") for place in places for path in beside if path.is_absolute()]
    by_itself = [path for path in (*beside, *shared) if path.is_file()]
    if by_itself:
        return by_itself[0], True
    others = [real.with_name("python-gdb.py"), root / "usr/bin/python-gdb.py"]
    others += [place / f"usr/bin/python{minor}-gdb.py" for place in places] if minor else []
    return next((path for path in others if path.is_file()), None), False


_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_SAFE = re.compile(r"-[a-zA-Z]*[IP][a-zA-Z]*")


def first_folder(words: Sequence[str], environment: Mapping[str, str], folder: Path) -> Path | None:
    """Return the folder that a Python puts before all others of its path; None if it has no such folder.

    Args:
        words: The words after the interpreter on its command line.
        environment: Its variables.
        folder: Its working folder.
    """
    if environment.get("PYTHONSAFEPATH"):
        return None
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, None)
        elif word.startswith(("-c", "-m")) or word == "-":
            return folder
        elif _SAFE.fullmatch(word):
            return None
        elif not word.startswith("-"):
            script = Path(os.path.realpath(folder / word))
            return script if script.is_dir() else script.parent
    return folder


def shadowed_torch(words: Sequence[str], environment: Mapping[str, str], folder: Path) -> Path | None:
    """Return the folder with sources of torch, and no built extension, that `import torch` would take."""
    first = first_folder(words, environment, folder)
    listed = [Path(part) for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part]
    for place in (*([first] if first else []), *listed):
        package = place / "torch"
        if (package / "__init__.py").is_file():
            built = any(package.glob("_C*.so")) or any(package.glob("_C*.pyd"))
            return None if built else place
    return None


def strange_venv(program: Path, prefix: Path) -> Path | None:
    """Return the virtual environment of a program that was made from an environment and has none of its packages.

    Args:
        program: The Python that is started.
        prefix: The environment's folder.
    """
    venv = Path(os.path.abspath(program)).parent.parent  # noqa: PTH100 (the link itself stands in the environment)
    if venv == prefix:
        return None
    try:
        rows = (line.partition("=") for line in (venv / "pyvenv.cfg").read_text(errors="replace").splitlines())
        values = {key.strip(): value.strip() for key, _, value in rows}
    except OSError:
        return None
    made = any(f"{prefix}{os.sep}" in f"{values.get(key, '')}{os.sep}" for key in ("home", "executable", "command"))
    sees = values.get("include-system-site-packages", "").lower() == "true" and values.get("home", "").startswith(
        str(prefix)
    )
    # A wheel target is a virtual environment itself: one made from it leads to the Python below both.
    return venv if made and (not sees or (prefix / "pyvenv.cfg").is_file()) else None
