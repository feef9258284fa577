"""Reports on hosts that are not this one: a report with some of its values assumed."""

from collections.abc import Callable
from dataclasses import replace

from tenv.core.errors import UsageError
from tenv.core.versions import Version
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.report import Gpu, HostReport, LibcudaKind

__all__ = ["Lookup", "assume_cuda", "assume_driver", "assume_gpu"]

Lookup = Callable[[str], tuple[str, Version, str] | None]
"""Finds a GPU's full name, compute capability and PCI id by a name that a person gives it."""


def assume_driver(report: HostReport, driver: Version) -> HostReport:
    """Return the report of a host with another kernel driver.

    What the driver brings along goes with it: its CUDA version, unless a person gave that one too, and the leftovers of
    another driver. cuda-compat stays, since it is installed apart from the driver.
    """
    cuda, compat = report.cuda, report.compat
    if not (isinstance(cuda, Fact) and cuda.kind in (OriginKind.OVERRIDE, OriginKind.ASSUMED)):
        cuda = Missing(f"driver {driver} is assumed, and nobody asked it", ReasonKind.ASSUMED)
    if isinstance(compat, Fact) and compat.value.kind is not LibcudaKind.CUDA_COMPAT:
        compat = Missing(f"driver {driver} is assumed, with libraries of its own", ReasonKind.ASSUMED)
    gone = Missing(f"driver {driver} is assumed", ReasonKind.ASSUMED)
    assumed = Fact(driver, "assumed", OriginKind.ASSUMED)
    return replace(report, driver=assumed, cuda=cuda, compat=compat, module=gone, driver_kind=gone, l4t=gone)


def assume_cuda(report: HostReport, cuda: Fact[Version] | Missing) -> HostReport:
    """Return the report of a host whose driver offers another CUDA version, or none."""
    return replace(report, cuda=cuda)


def assume_gpu(report: HostReport, name: str, lookup: Lookup) -> HostReport:
    """Return the report of a host with one GPU of a name.

    Args:
        report: The report.
        name: The name, as a person gives it.
        lookup: Finds the GPU by its name.

    Raises:
        UsageError: No GPU of that name is known.
    """
    found = lookup(name)
    if found is None:
        hint = "name it as nvidia-smi does (`GTX 1660 Ti`), or give its PCI id (`10de:2182`) or capability (`7.5`)"
        raise UsageError(f"no GPU is known by the name `{name}`", hint=hint)
    full, capability, pci = found
    return replace(report, gpus=Fact((Gpu(full, capability, pci_id=pci),), "assumed", OriginKind.ASSUMED))
