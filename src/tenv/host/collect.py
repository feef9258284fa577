"""The host report of this machine, by all probes (those that wait for programs run at once), or by assumed values."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from tenv.core.errors import UsageError
from tenv.core.threads import ahead
from tenv.core.versions import Version
from tenv.host import driver
from tenv.host.field import Lane, host_fields
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.loader import Loader
from tenv.host.nvidia import Nvidia
from tenv.host.places import Places
from tenv.host.report import Gpu, HostReport, LibcudaKind

Lookup = Callable[[str], tuple[str, Version, str] | None]
"""Finds a GPU's full name, compute capability and PCI id by a name from the user."""


class Scan:
    """One scan of a machine."""

    places: Places  # imported here, since the modules of probes and the report import each other
    """Where to look."""
    folder: Path
    """Where environments go, for the disk."""
    loader: Loader
    """Finds libraries as the machine's loader does."""
    nvidia: Nvidia
    """The driver's tools; only for probes in the driver's lane."""

    def __init__(self, places: Places | None = None, folder: Path = Path()) -> None:
        self.places = places or Places()
        self.folder = folder
        self.loader = Loader(self.places)
        self.nvidia = Nvidia(self.places, self.loader)

    @cached_property
    def driver(self) -> Fact[Version] | Missing:
        """The version of the kernel driver; only for probes in the driver's lane."""
        return driver.probe(self.nvidia)


def collect(places: Places | None = None, folder: Path = Path()) -> HostReport:
    """Return the host report of this machine.

    Args:
        places: Where to look; None means this machine.
        folder: Where environments go, for the disk.
    """
    scan = Scan(places, folder)
    alone = [ahead(partial(_in_turn, scan, name)) for name, field in host_fields().items() if field.lane is Lane.ALONE]
    _ = scan.loader.cache  # read once, before two threads ask for it
    waiting = [*alone, ahead(partial(_in_turn, scan, *_names(Lane.DRIVER)))]
    found = _in_turn(scan, *_names(Lane.HERE))
    for wait in waiting:
        found |= wait()
    return HostReport(**found)


def _names(lane: Lane) -> list[str]:
    return [name for name, field in host_fields().items() if field.lane is lane]


def _in_turn(scan: Scan, *names: str) -> dict[str, Fact[Any] | Missing]:
    return {name: host_fields()[name].probe(scan) for name in names}


def assume_driver(report: HostReport, driver: Version) -> HostReport:
    """Return the report of a host with another kernel driver.

    Values that come from the driver are replaced too: its CUDA version, unless the user sets that as well, and
    leftovers of another driver. cuda-compat stays, since it is installed separately from the driver.
    """
    cuda, compat = report.cuda, report.compat
    if not (isinstance(cuda, Fact) and cuda.kind in (OriginKind.OVERRIDE, OriginKind.ASSUMED)):
        cuda = Missing(f"driver {driver} is assumed, so it was not asked", ReasonKind.ASSUMED)
    if isinstance(compat, Fact) and compat.value.kind is not LibcudaKind.CUDA_COMPAT:
        compat = Missing(f"driver {driver} is assumed, with its own libraries", ReasonKind.ASSUMED)
    gone = Missing(f"driver {driver} is assumed", ReasonKind.ASSUMED)
    assumed = Fact(driver, "assumed", OriginKind.ASSUMED)
    return replace(report, driver=assumed, cuda=cuda, compat=compat, module=gone, driver_kind=gone, l4t=gone)


def assume_cuda(report: HostReport, cuda: Fact[Version] | Missing) -> HostReport:
    """Return the report of a host whose driver offers another CUDA version or none."""
    return replace(report, cuda=cuda)


def assume_gpu(report: HostReport, name: str, lookup: Lookup) -> HostReport:
    """Return the report of a host with one GPU of the given name.

    Args:
        report: The report.
        name: The name from the user.
        lookup: Finds the GPU by its name.

    Raises:
        UsageError: No GPU of that name is in the tables.
    """
    found = lookup(name)
    if found is None:
        hint = (
            "pass the name that nvidia-smi prints (`GTX 1660 Ti`), its PCI id (`10de:2182`) or its capability (`7.5`)"
        )
        raise UsageError(f"unknown GPU: `{name}`", hint=hint)
    full, capability, pci = found
    return replace(report, gpus=Fact((Gpu(full, capability, pci_id=pci),), "assumed", OriginKind.ASSUMED))
