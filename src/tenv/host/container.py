"""Detect the kind of container that this process runs in."""

import re

from tenv.host.field import HostField
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.places import Places, exists, read

__all__ = ["CONTAINER", "parse_cgroup", "probe"]

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


def probe(places: Places | None = None) -> Fact[str] | Missing:
    """Return the kind of container, or `Missing` if there is no sign of one.

    Args:
        places: Where to look; None means this machine.
    """
    places = places or Places()
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
    probe=lambda scan: probe(scan.places),
    show=lambda kind: [kind],
)
