"""Whether a debugger may trace a process here: Yama's `ptrace_scope`, capabilities, filters of containers."""

import os
import re
import sys

from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.debugging.python_processes import PythonProcess
from tenv.host.interface import Fact
from tenv.host.places import Places, read
from tenv.host.system import container, ptrace_scope

__all__ = ["Obstacle", "TracingRights", "attaching", "read_rights", "starting"]

_SYS_PTRACE = 1 << 19
"""CAP_SYS_PTRACE (capabilities(7))."""

_TRY = "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)"
"""Asks to be traced (PTRACE_TRACEME), which is what gdb's child does; it needs no right but that of the call itself."""

_RELAX = "echo 0 | sudo tee /proc/sys/kernel/yama/ptrace_scope"
_ADMIN_ONLY, _NEVER = 2, 3


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a debugger can't do its work.

    Attributes:
        message: What forbids it.
        hint: What allows it.
    """

    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class TracingRights:
    """What this machine lets a debugger do.

    Attributes:
        scope: Yama's `ptrace_scope`: 0 all processes of the user, 1 only children, 2 only with CAP_SYS_PTRACE, 3 none;
            None where the kernel has no Yama.
        capable: Whether this process has CAP_SYS_PTRACE.
        traced: Whether a child may ask to be traced; a seccomp filter of a container may forbid it.
        container: The kind of container, or an empty text.
    """

    scope: int | None
    capable: bool
    traced: bool
    container: str = ""


def read_rights(places: Places | None = None) -> TracingRights:
    """Read what this machine lets a debugger do.

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
        rights: What this machine lets a debugger do.
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
