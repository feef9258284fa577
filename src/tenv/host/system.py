"""Detect the system's name, its platform, its container, and the rights of a debugger."""

import platform
import re

from tenv.core.untrusted import whole_number
from tenv.host.field import HostField
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.machine import platform_name
from tenv.host.places import Places, exists, is_wsl, read

_VARIABLES = {"APPTAINER_CONTAINER": "apptainer", "SINGULARITY_CONTAINER": "singularity"}
_FILES = {"/run/.containerenv": "podman", "/.dockerenv": "docker", "/singularity": "singularity"}
_GROUPS = {
    "kubepods": "kubernetes",
    "docker": "docker",
    "libpod": "podman",
    "lxc": "lxc",
    "containerd": "containerd",
}
_CGROUP = "/proc/1/cgroup"
_SYSTEMD = "/run/systemd/container"


def parse_cgroup(text: str) -> str | None:
    """Return the kind of container that the control groups of process 1 show, or None."""
    for line in text.splitlines():
        group = line.rpartition(":")[2]
        for word, kind in _GROUPS.items():
            if re.search(rf"(^|[/.:-]){word}\b", group):
                return kind
    return None


def container(places: Places) -> Fact[str] | Missing:
    """Return the kind of container, or `Missing` if there is no sign of one."""
    for variable, kind in _VARIABLES.items():
        if places.environ.get(variable):
            return Fact(kind, variable, OriginKind.VARIABLE)
    if places.environ.get("KUBERNETES_SERVICE_HOST"):
        return Fact("kubernetes", "KUBERNETES_SERVICE_HOST", OriginKind.VARIABLE)
    for path, kind in _FILES.items():
        if exists(places.at(path)):
            return Fact(kind, path, OriginKind.SYSTEM)
    if said := places.environ.get("container"):  # systemd's convention, which podman and lxc follow
        return Fact(said, "the variable `container`", OriginKind.VARIABLE)
    for path, parse in ((_SYSTEMD, str.strip), (_CGROUP, parse_cgroup)):
        text = read(places.at(path))
        if isinstance(text, str) and (found := parse(text)):
            return Fact(found, path, OriginKind.SYSTEM)
    return Missing("no sign of a container", ReasonKind.NONE)


CONTAINER = HostField(
    label="container",
    meaning="the kind of container that tenv runs in",
    form='`"docker"`',
    probe=lambda scan: container(scan.places),
)


_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"
_NAME = "/proc/sys/kernel/hostname"
_RELEASE = "/proc/sys/kernel/osrelease"


def ptrace_scope(places: Places) -> Fact[int] | Missing:
    """Return which processes may be traced: 0 processes of the same user, 1 children, 2 any as root, 3 none."""
    text = read(places.at(_SCOPE))
    if isinstance(text, Missing):
        return Missing(f"{_SCOPE}: {text.reason}", text.kind)
    scope = whole_number(text.strip())
    if scope is None:
        return Missing(f"{_SCOPE} holds `{text.strip()}`", ReasonKind.UNREADABLE)
    return Fact(scope, _SCOPE, OriginKind.SYSTEM)


_OF_SLURM = "SLURMD_NODENAME"
"""The name that Slurm's scheduler has for the node of a job: its NodeName, which need not be the machine's own."""


def hostname(places: Places) -> Fact[str] | Missing:
    """Return the machine's name."""
    if name := places.variable(_OF_SLURM):
        return Fact(name, _OF_SLURM, OriginKind.VARIABLE)
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
    meaning="the machine's name; in a job of Slurm its NodeName (`SLURMD_NODENAME`)",
    form="a text",
    probe=lambda scan: hostname(scan.places),
)

PLATFORM = HostField(
    label="platform",
    meaning="the platform by its conda name",
    form='`"linux-64"`',
    probe=lambda scan: host_platform(scan.places),
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
