"""Note the answer of a command that only reads the machine, with all that it looked at (`tenv.quick.noted_answer`).

While the command works, the functions of `os` by which Python looks at files, and the one that starts programs, also
write down what they gave. An answer is noted only if the command changed nothing and every look, repeated afterwards,
gives the same. What it did otherwise (run nvidia-smi, take long, write) is noted nowhere.
"""

import builtins
import contextlib
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from tenv.core import process
from tenv.core.missing import Missing
from tenv.quick import looks
from tenv.quick.noted_answer import MOST, is_as_noted, is_noted, is_own_folder, key_of, place_of
from tenv.quick.short_way import OFF

__all__ = ["noted"]

_KEPT = 16
"""Notes that are kept: those of the latest shells and folders."""
_MODE = 0o700
_COARSE = 0.1
"""Seconds by which the time of a changed file, or that of a process, may lie before the clock."""
_LONG = looks.SECONDS / 2
"""Seconds above which a program makes no note: the next time it may take longer than a note waits."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_OTHERS = (
    *("chmod", "chown", "execve", "fork", "getxattr", "link", "mkdir", "mkfifo", "popen", "posix_spawn", "remove"),
    *("removexattr", "rename", "replace", "rmdir", "setxattr", "statvfs", "symlink", "system", "truncate", "unlink"),
    *("utime",),
)
"""What changes something, or looks at something that is not noted; a command that does it has no note."""
_ACCESS, _RUN, _POPEN = os.access, process.run, process.STARTED.__init__


class _SpoiledError(Exception):
    """The command did what is not noted."""


def noted(words: list[str], command: Callable[[], int]) -> int:
    """Run a command and note its answer, if it is one that is noted; returns its exit status."""
    key = key_of(words) if sys.platform == "linux" and os.environ.get(OFF) != "0" and is_noted(words) else None
    place = place_of(key) if key else None
    if place is None:
        return command()
    record = _Record()
    with record.watching():
        status = command()
    with contextlib.suppress(_SpoiledError, OSError, ValueError):
        _write(*place, {"key": place[1], **record.content(_begun()), "status": int(status)})
    return status


def _begun() -> int:
    """Return when this process began, or a little before, in ns of the system's clock; see proc_pid_stat(5)."""
    ticks = int(Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time_ns() - int((age + _COARSE) * 1e9)


def _write(folder: str, name: str, note: dict[str, Any]) -> None:
    data = json.dumps(note)
    if len(data) > MOST or note["status"] not in (0, 1) or not is_as_noted(note):
        return
    there = Path(folder)
    for path in (there.parent, there):
        path.mkdir(mode=_MODE, parents=True, exist_ok=True)
    if not is_own_folder(folder):  # nothing is written, or removed as an old note, in a folder of something else
        return
    old = sorted(there.iterdir(), key=lambda path: path.lstat().st_mtime_ns)
    for path in old[: max(0, len(old) - _KEPT + 1)]:
        path.unlink()
    unfinished = there / f".{name}.{os.getpid()}"
    try:
        handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(handle, "w", encoding="ascii") as file:  # noqa: PTH123 (of a handle)
            file.write(data)
        unfinished.replace(there / name)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


class _Record:
    """What a command looked at, what it started and what it printed."""

    def __init__(self) -> None:
        self._looks: dict[tuple[str, str], str] = {}
        self._programs: list[tuple[float, list[Any]]] = []
        self._writes: list[tuple[int, str]] = []
        self._started = 0
        self._spoiled = False

    def content(self, begun: int) -> dict[str, Any]:
        """Return the note's part of it; raises _SpoiledError if there is none. `begun` is when the process began."""
        if self._spoiled or self._started != len(self._programs):
            raise _SpoiledError
        for path in _own_files():
            info = Path(path).stat()
            if info.st_mtime_ns > begun or info.st_ctime_ns > begun:  # what ran may be what was there before
                raise _SpoiledError
            self._note("s", path, looks.of_stat(path, info))
        rows = [(kind, path, given) for (kind, path), given in self._looks.items()]
        programs = [row for _, row in sorted(self._programs, key=lambda pair: -pair[0])]  # the longest begins first
        return {"looks": rows, "programs": programs, "writes": self._writes}

    def _note(self, kind: str, path: Any, given: str) -> None:
        try:
            name = os.fspath(path)
        except TypeError:  # an open file
            self._spoiled = True
            return
        if not isinstance(name, str) or self._looks.setdefault((kind, name), given) != given:
            self._spoiled = True

    def _watched(self, kind: str, look: Callable[..., Any], given: Callable[[Any, Any], str]) -> Callable[..., Any]:
        """Return a function of `os` that also notes what it gave for a path."""

        def call(path: Any = ".", *rest: Any, **options: Any) -> Any:
            if any(value not in (None, True, False) for value in options.values()) or isinstance(path, int):
                self._spoiled = True  # relative to an open folder
                return look(path, *rest, **options)
            own = "l" if kind == "s" and options.get("follow_symlinks") is False else kind
            try:
                found = look(path, *rest, **options)
            except OSError as error:
                self._note(own, path, f"E{error.errno}")
                raise
            self._note(own, path, given(path, found))
            return found

        return call

    def _access(self, path: Any, mode: int, **options: Any) -> bool:
        found = _ACCESS(path, mode, **options)
        self._spoiled = self._spoiled or bool(options)
        self._note("a", f"{os.fspath(path)}\0{mode}", str(found))
        return found

    def _content(self, path: str) -> None:
        try:
            self._note("o", path, looks.LOOKS["o"](path))
        except ValueError:  # too large, or no path at all, of which the opening itself complains
            self._spoiled = True

    def _opens(self, opening: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that opens files for reading and notes their content; for writing, it spoils the note."""

        def call(path: Any, mode: Any = "r", *rest: Any, **options: Any) -> Any:
            if not isinstance(path, int):
                reads = not set(mode) & set("wax+") if isinstance(mode, str) else not mode & _WRITING
                if os.fspath(path) == os.devnull:
                    pass
                elif reads and "dir_fd" not in options and isinstance(os.fspath(path), str):
                    self._content(os.fspath(path))
                else:
                    self._spoiled = True
            return opening(path, mode, *rest, **options)

        return call

    def _run(self, arguments: Any, **options: Any) -> Any:
        begun = time.monotonic()
        done = _RUN(arguments, **options)
        took = time.monotonic() - begun
        environment: dict[str, str] = options.get("environment") or {}
        words = [str(word) for word in arguments]
        plain = set(options) <= {"environment", "timeout", "bound"} and bool(environment)
        if not plain or isinstance(done, Missing) or not words[0].startswith("/") or took > _LONG:
            self._spoiled = True
            return done
        changes = {name: value for name, value in environment.items() if os.environ.get(name) != value}
        if set(os.environ) - set(environment) or os.path.basename(words[0]).startswith("nvidia-smi"):  # noqa: PTH119
            self._spoiled = True  # nvidia-smi alone takes longer than all else together
        self._programs.append((took, [words, changes, looks.of_program(done.status, done.stdout, done.stderr)]))
        return done

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Note what is looked at and printed meanwhile."""
        _unbind_glob()
        scan, names = os.scandir, os.listdir

        def entries(path: Any, _: Any) -> str:
            with scan(path) as found:
                return looks.of_entries(list(found))

        def listed(path: Any, _: Any) -> str:
            return str(looks.LOOKS["d"](os.fspath(path)))

        def started(child: Any, *words: Any, **options: Any) -> None:
            self._started += 1
            _POPEN(child, *words, **options)

        def spoiling(do: Callable[..., Any]) -> Callable[..., Any]:
            def call(*words: Any, **options: Any) -> Any:
                self._spoiled = True
                return do(*words, **options)

            return call

        changed: list[tuple[Any, str, Any]] = [
            *((os, name, spoiling(getattr(os, name))) for name in _OTHERS if hasattr(os, name)),
            (os, "stat", self._watched("s", os.stat, lambda path, found: looks.of_stat(os.fspath(path), found))),
            (os, "lstat", self._watched("l", os.lstat, lambda path, found: looks.of_stat(os.fspath(path), found))),
            (os, "readlink", self._watched("r", os.readlink, lambda _, found: found)),
            (os, "listdir", self._watched("d", names, listed)),
            (os, "scandir", self._watched("e", scan, entries)),
            (os, "access", self._access),
            (os, "open", self._opens(os.open)),
            (io, "open", self._opens(io.open)),
            (builtins, "open", self._opens(builtins.open)),
            (process, "run", self._run),
            (process.STARTED, "__init__", started),
            (sys, "stdout", _Tee(sys.stdout, 1, self._writes)),
            (sys, "stderr", _Tee(sys.stderr, 2, self._writes)),
        ]
        before = [(holder, name, getattr(holder, name)) for holder, name, _ in changed]
        for holder, name, value in changed:
            setattr(holder, name, value)
        try:
            yield
        finally:
            for (holder, name, value), (_, _, ours) in zip(before, changed, strict=True):
                if getattr(holder, name) is ours:
                    setattr(holder, name, value)
                else:  # such as a stream that has no reader any more
                    self._spoiled = True


def _unbind_glob() -> None:
    """Make `Path.glob` take functions of `os` at each call; Python 3.13 keeps them in a class (`glob.py`)."""
    globber = getattr(sys.modules.get("glob"), "_StringGlobber", None)
    for name in ("scandir", "lstat"):
        if getattr(globber, name, None) is getattr(os, name):
            setattr(globber, name, staticmethod(lambda path, name=name: getattr(os, name)(path)))


class _Tee:
    """A stream that also keeps what is written to it."""

    def __init__(self, stream: TextIO, number: int, writes: list[tuple[int, str]]) -> None:
        self._stream = stream
        self._number = number
        self._writes = writes

    def write(self, text: str) -> int:
        self._writes.append((self._number, text))
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _own_files() -> list[str]:
    """Return the files of the loaded modules that are not Python's own, whose version stands in the key."""
    library = str(Path(os.__file__).parent)
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    return sorted(
        file
        for file in files
        if isinstance(file, str) and (not file.startswith(f"{library}/") or "/site-packages/" in file)
    )
