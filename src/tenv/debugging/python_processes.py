"""The Python processes of this machine, and whether a debugger may trace them.

Debuggers and data loaders start several processes. Yama's `ptrace_scope`, capabilities and filters of containers decide
on the right to attach.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.host.interface import Fact
from tenv.host.places import Places, read
from tenv.host.system import container, ptrace_scope


class Role(StrEnum):
    """The role of a Python process."""

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
    """A process that runs Python."""

    pid: int
    """Its process id."""
    parent: int
    """That of its parent."""
    words: tuple[str, ...]
    """Its command line."""
    role: Role
    """Its role."""
    user: int
    """The id of the user that it belongs to."""
    tracer: int
    """The process id of the debugger that has it already; 0 without one."""

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
    except OSError:  # of another user: only its own name can be read
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
    """Return the processes with a name in their command line: a word of it, its last part, or its beginning."""
    exact = [row for row in processes if any(name in (word, Path(word).name) for word in row.words)]
    return exact or [row for row in processes if name in " ".join(row.words)]


def choose(processes: Sequence[PythonProcess]) -> PythonProcess | None:
    """Return the process that runs the program, where exactly one does."""
    main = [row for row in processes if row.role in _MAIN]
    return main[0] if len(main) == 1 else None


_SYS_PTRACE = 1 << 19
"""CAP_SYS_PTRACE (capabilities(7))."""

_TRY = "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)"
"""Asks to be traced (PTRACE_TRACEME), as gdb's child does; it needs no right but the call itself."""

_RELAX = "echo 0 | sudo tee /proc/sys/kernel/yama/ptrace_scope"
_ADMIN_ONLY, _NEVER = 2, 3


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a debugger can't do its work."""

    message: str
    """The obstacle."""
    hint: str
    """The way to remove it."""


@dataclass(frozen=True, slots=True)
class TracingRights:
    """The rights of a debugger on this machine."""

    scope: int | None
    """Yama's `ptrace_scope`: 0 all processes of the user, 1 only children, 2 only with CAP_SYS_PTRACE, 3 none; None
    where the kernel has no Yama."""
    capable: bool
    """Whether this process has CAP_SYS_PTRACE."""
    traced: bool
    """Whether a child may ask to be traced; a seccomp filter of a container may forbid it."""
    container: str = ""
    """The kind of container, or an empty text."""


def read_rights(places: Places | None = None) -> TracingRights:
    """Read the rights of a debugger on this machine.

    Args:
        places: Where to look; None means this machine.
    """
    places = places or Places()
    scope, kind = ptrace_scope(places), container(places)
    text = read(places.at("/proc/self/status"))
    mask = re.search(r"^CapEff:\s*([0-9a-f]+)$", text, re.MULTILINE) if isinstance(text, str) else None
    done = process.run([sys.executable, "-I", "-S", "-c", _TRY], timeout=20)
    return TracingRights(
        scope=scope.value if isinstance(scope, Fact) else None,
        capable=bool(mask and int(mask[1], 16) & _SYS_PTRACE),
        traced=isinstance(done, process.Missing) or done.status == 0,
        container=kind.value if isinstance(kind, Fact) else "",
    )


def starting(rights: TracingRights) -> Obstacle | None:
    """Return why a program can't be started under a debugger."""
    if rights.scope == _NEVER:
        return Obstacle(
            "ptrace_scope is 3: no process may be traced until the machine starts again",
            "set kernel.yama.ptrace_scope to 1 in /etc/sysctl.d and start the machine again",
        )
    if rights.scope == _ADMIN_ONLY and not rights.capable:
        return Obstacle("ptrace_scope is 2: only the administrator may trace a process", _in(rights, _RELAX))
    if not rights.traced:
        return Obstacle("this process may not trace another one: the system refuses ptrace", _in(rights, _RELAX))
    return None


def attaching(rights: TracingRights, target: PythonProcess | None = None) -> Obstacle | None:
    """Return why a debugger can't attach to a process that runs already.

    Args:
        rights: The rights of a debugger on this machine.
        target: The process; None to ask for any of the user's own.
    """
    if obstacle := starting(rights):
        return obstacle
    if target and target.tracer:
        return Obstacle(
            f"process {target.pid} has a debugger already: process {target.tracer}",
            f"end that debugger: kill {target.tracer}",
        )
    if rights.capable:
        return None
    if target and target.user != os.getuid():
        return Obstacle(
            f"process {target.pid} belongs to user {target.user}", "attach as that user, or with CAP_SYS_PTRACE"
        )
    if rights.scope:
        return Obstacle(
            f"ptrace_scope is {rights.scope}: a debugger may only trace what it has started itself",
            _in(rights, _RELAX),
        )
    return None


def _in(rights: TracingRights, command: str) -> str:
    if rights.container in ("docker", "podman"):
        return f"start the container with `{rights.container} run --cap-add=SYS_PTRACE`; on the host: {command}"
    return command
