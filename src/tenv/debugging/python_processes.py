"""The Python processes of this machine, and what each of them is: debuggers and data loaders start several."""

import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from tenv.core.dataclass import dataclass

__all__ = ["PythonProcess", "Role", "choose", "matching", "python_processes"]


class Role(StrEnum):
    """What a Python process is."""

    PROGRAM = "the program"
    DEBUGGED = "the program, under debugpy"
    LAUNCHER = "debugpy's launcher, which waits for the program"
    ADAPTER = "debugpy's adapter, which talks to the editor"
    TORCHRUN = "torchrun, which starts the workers"
    FORKED = "a worker, forked from the program (DataLoader)"
    SPAWNED = "a worker, spawned by multiprocessing"
    TRACKER = "multiprocessing's resource tracker"


_WIDTH = 160
"""Characters of a command line that are shown: the one of a spawned worker or of `-c` may be a program."""

_MAIN = (Role.PROGRAM, Role.DEBUGGED)


@dataclass(frozen=True, slots=True)
class PythonProcess:
    """A process that runs Python.

    Attributes:
        pid: Its process id.
        parent: That of its parent.
        words: Its command line.
        role: What it is.
        user: The id of the user that it belongs to.
        tracer: The process id of the debugger that has it already; 0 without one.
    """

    pid: int
    parent: int
    words: tuple[str, ...]
    role: Role
    user: int
    tracer: int

    @property
    def command(self) -> str:
        """The command line on one line, cut off where it is long."""
        text = " ".join(" ".join(self.words).split())
        return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 2]} …"


def python_processes(proc: Path = Path("/proc")) -> list[PythonProcess]:
    """Return the Python processes that can be seen, by their ids, except this one.

    Args:
        proc: Where the kernel shows processes (proc(5)).
    """
    found: dict[int, PythonProcess] = {}
    for folder in proc.iterdir() if proc.is_dir() else ():
        if folder.name.isdigit() and int(folder.name) != os.getpid() and (read := _read(folder)):
            found[read.pid] = read
    return [_with_role(row, found) for _, row in sorted(found.items())]


def _read(folder: Path) -> PythonProcess | None:
    try:
        words = tuple((folder / "cmdline").read_text(errors="replace").rstrip("\0").split("\0"))
        rows = (line.partition(":") for line in (folder / "status").read_text(errors="replace").splitlines())
        status = {key: value.split() for key, _, value in rows}
        numbers = int(status["PPid"][0]), int(status["Uid"][0]), int(status["TracerPid"][0])
    except (OSError, KeyError, IndexError, ValueError):  # it is gone, or another user's
        return None
    if not _runs_python(folder, words):
        return None
    return PythonProcess(int(folder.name), numbers[0], words, Role.PROGRAM, numbers[1], numbers[2])


def _runs_python(folder: Path, words: Sequence[str]) -> bool:
    try:
        name = Path(os.readlink(folder / "exe")).name  # noqa: PTH115 (a kernel's link, with ` (deleted)` at times)
    except OSError:  # of another user: only what it calls itself can be read
        name = Path(words[0]).name
    return name.startswith(("python", "pypy"))


def _with_role(process: PythonProcess, others: Mapping[int, PythonProcess]) -> PythonProcess:
    words, parent = process.words, others.get(process.parent)
    role = _role(words)
    if role is Role.PROGRAM and parent and parent.words == words:
        role = Role.FORKED
    return PythonProcess(process.pid, process.parent, words, role, process.user, process.tracer)


def _role(words: Sequence[str]) -> Role:
    code, module = _after("-c", words), _after("-m", words)
    # debugpy starts itself by its folder: python …/debugpy/adapter, …/debugpy/launcher, …/debugpy --connect.
    start = next((word for word in words[1:] if not word.startswith("-")), "").rstrip("/")
    parts = tuple(module.split(".")) if module else Path(start).parts[-2:]
    tests = {
        Role.TRACKER: "multiprocessing.resource_tracker" in code,
        Role.SPAWNED: "multiprocessing.spawn" in code or "multiprocessing.forkserver" in code,
        Role.TORCHRUN: parts[-1:] == ("torchrun",) or parts[:2] == ("torch", "distributed"),
        Role.ADAPTER: parts == ("debugpy", "adapter"),
        Role.LAUNCHER: parts == ("debugpy", "launcher"),
        Role.DEBUGGED: parts[-1:] == ("debugpy",),
    }
    return next((role for role, true in tests.items() if true), Role.PROGRAM)


def _after(option: str, words: Sequence[str]) -> str:
    return words[words.index(option) + 1] if option in words[:-1] else ""


def matching(processes: Sequence[PythonProcess], name: str) -> list[PythonProcess]:
    """Return the processes whose command line holds a name: a word of it, its last part, or its beginning."""
    exact = [row for row in processes if any(name in (word, Path(word).name) for word in row.words)]
    return exact or [row for row in processes if name in " ".join(row.words)]


def choose(processes: Sequence[PythonProcess]) -> PythonProcess | None:
    """Return the process that runs the program, where exactly one does."""
    main = [row for row in processes if row.role in _MAIN]
    return main[0] if len(main) == 1 else None
