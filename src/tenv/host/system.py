"""Facts of the system itself: its name, its kind, and what it lets a debugger do."""

import platform

from tenv.host.interface import Fact, Missing
from tenv.host.machine import current_platform
from tenv.host.places import Places, is_wsl, read

__all__ = ["host_platform", "hostname", "ptrace_scope", "wsl"]

_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"
_NAME = "/proc/sys/kernel/hostname"
_RELEASE = "/proc/sys/kernel/osrelease"


def ptrace_scope(places: Places) -> Fact[int] | Missing:
    """Return whom a process may trace: 0 any of the same user, 1 its children, 2 only as root, 3 nobody."""
    text = read(places.at(_SCOPE))
    if isinstance(text, Missing):
        return Missing(f"{_SCOPE}: {text.reason}")
    return Fact(int(text), _SCOPE) if text.strip().isdecimal() else Missing(f"{_SCOPE} holds `{text.strip()}`")


def hostname(places: Places) -> Fact[str] | Missing:
    """Return the machine's name."""
    text = read(places.at(_NAME))
    if isinstance(text, str) and text.strip():
        return Fact(text.strip(), _NAME)
    name = platform.node()
    return Fact(name, "uname") if name else Missing("the system has no name")


def host_platform(places: Places) -> Fact[str]:
    """Return the platform by its conda name."""
    return Fact(current_platform(places.machine), "uname")


def wsl(places: Places) -> Fact[bool]:
    """Return whether this is Linux under Windows."""
    return Fact(is_wsl(places.root), f"{_RELEASE}, /dev/dxg")
