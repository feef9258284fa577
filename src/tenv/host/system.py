"""Detect the system's name, its platform, and what it permits a debugger."""

import platform

from tenv.core.untrusted import whole_number
from tenv.host.field import HostField
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.machine import platform_name
from tenv.host.places import Places, is_wsl, read

__all__ = ["HOSTNAME", "PLATFORM", "PTRACE_SCOPE", "WSL", "host_platform", "hostname", "ptrace_scope", "wsl"]

_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"
_NAME = "/proc/sys/kernel/hostname"
_RELEASE = "/proc/sys/kernel/osrelease"


def ptrace_scope(places: Places) -> Fact[int] | Missing:
    """Return which processes may be traced: 0 those of the same user, 1 children, 2 any as root, 3 none."""
    text = read(places.at(_SCOPE))
    if isinstance(text, Missing):
        return Missing(f"{_SCOPE}: {text.reason}", text.kind)
    scope = whole_number(text.strip())
    if scope is None:
        return Missing(f"{_SCOPE} holds `{text.strip()}`", ReasonKind.UNREADABLE)
    return Fact(scope, _SCOPE, OriginKind.SYSTEM)


def hostname(places: Places) -> Fact[str] | Missing:
    """Return the machine's name."""
    text = read(places.at(_NAME))
    if isinstance(text, str) and text.strip():
        return Fact(text.strip(), _NAME, OriginKind.SYSTEM)
    name = platform.node()
    return Fact(name, "uname", OriginKind.SYSTEM) if name else Missing("the system has no name", ReasonKind.NONE)


def host_platform(places: Places) -> Fact[str]:
    """Return the platform by its conda name."""
    return Fact(platform_name(places.machine), "uname", OriginKind.SYSTEM)


def wsl(places: Places) -> Fact[bool]:
    """Return whether this is Linux under Windows."""
    return Fact(is_wsl(places.root), f"{_RELEASE}, /dev/dxg", OriginKind.SYSTEM)


HOSTNAME = HostField(
    label="host",
    meaning="the machine's name",
    form="a text",
    probe=lambda scan: hostname(scan.places),
    show=lambda name: [name],
)

PLATFORM = HostField(
    label="platform",
    meaning="the platform by its conda name",
    form='`"linux-64"`',
    probe=lambda scan: host_platform(scan.places),
    show=lambda name: [name],
)

WSL = HostField(
    label="wsl",
    meaning="whether this is Linux under Windows",
    form="true or false",
    probe=lambda scan: wsl(scan.places),
    show=lambda under_windows: ["yes" if under_windows else "no"],
)

PTRACE_SCOPE = HostField(
    label="ptrace",
    meaning="which processes may be traced (`kernel.yama.ptrace_scope`)",
    form="a number, 0 to 3",
    probe=lambda scan: ptrace_scope(scan.places),
    show=lambda scope: [f"scope {scope}"],
)
