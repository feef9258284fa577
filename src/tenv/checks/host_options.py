"""Report what this machine offers, or a machine that a report or an assumption describes."""

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tenv.core.errors import UsageError
from tenv.core.versions import Version
from tenv.facts.tables import load_facts
from tenv.host.cuda_api import override
from tenv.host.interface import Missing
from tenv.host.places import Places
from tenv.host.report import Gpu, HostReport
from tenv.project.context import Context

if TYPE_CHECKING:
    from tenv.host.assume import Lookup
    from tenv.host.report_file import Given

__all__ = ["HostOptions", "find_gpu", "name_gpus", "read", "report"]


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Which host is meant, where it is not this one.

    Attributes:
        host_report: A file that ``tenv host --json`` wrote or somebody pasted, ``-`` for standard input; empty for this
            machine.
        assume_driver: The kernel driver's version to assume, or an empty string.
        assume_gpu: The name of the GPU to assume, or an empty string.
        given: What the file says, where it has been read.
    """

    host_report: str = ""
    assume_driver: str = ""
    assume_gpu: str = ""
    given: "Given | None" = None


def read(options: HostOptions) -> HostOptions:
    """Return the options with what the file of the report says; raises HostReportError when it can't be read."""
    if not options.host_report or options.given:
        return options
    from tenv.host.report_file import read_file  # late: who judges this machine reads no report

    return replace(options, given=read_file(options.host_report))


def report(context: Context, options: HostOptions, lookup: "Lookup | None" = None) -> HostReport:
    """Return the report that is meant.

    Args:
        context: Where environments go, and the caller's environment.
        options: Which host is meant.
        lookup: Finds the GPU to assume by its name.

    Raises:
        HostReportError: The report can't be read.
        UsageError: What is to be assumed can't be.
    """
    from tenv.host.assume import assume_cuda, assume_driver, assume_gpu
    from tenv.host.collect import collect  # late: `check-driver` asks no more than a driver

    driver = _version(options.assume_driver)
    if given := read(options).given:
        found = given.report
        # As in conda and pixi, the variable wins over whatever was detected.
        if (said := override(context.environ)) is not None:
            found = assume_cuda(found, said)
    else:
        found = collect(Places(environ=context.environ), context.places.environments())
    if driver is not None:
        found = assume_driver(found, driver)
    if options.assume_gpu:
        found = assume_gpu(found, options.assume_gpu, lookup or find_gpu)
    return name_gpus(found)


def _version(text: str) -> Version | None:
    try:
        return Version(text.encode("ascii", "backslashreplace").decode()) if text else None
    except ValueError as error:
        raise UsageError(str(error), hint="give a driver's version: `--assume-driver 535.104.12`") from error


def find_gpu(name: str) -> tuple[str, Version, str] | None:
    """Return a GPU's full name, compute capability and PCI id from the tables, None when they do not have it.

    Args:
        name: Its name, also cut short (``GeForce GTX 108...``), its PCI id (``10de:2182``), or a compute capability
            alone (``8.6``), which stands for a GPU without a name.
    """
    from tenv.facts.gpu_names import find_by_id, find_by_name

    facts, asked = load_facts(), name.strip()
    if re.fullmatch(r"\d{1,2}\.\d", asked, re.ASCII):
        capability = Version(asked)
        rows = facts.cuda_gpu_arch
        known = rows.family(capability) is not None or rows.range(capability) is not None
        return (f"a GPU of compute capability {asked}", capability, "") if known else None
    if re.fullmatch(r"(0x)?[0-9a-f]{4}[:\s]\s*(0x)?[0-9a-f]{4}", asked, re.IGNORECASE):
        listed = find_by_id(asked, facts)
        return (listed.name, listed.capability, listed.pci_id) if listed else None
    found = find_by_name(asked, facts)
    if found is None:
        return None
    devices = facts.gpu_pci.devices if not found.pci_id else ()
    alike = (row.pci_id for row in devices if row.name == found.name and row.capability == found.capability)
    pci_id = found.pci_id or next(alike, "")
    return found.name, found.capability, pci_id


def name_gpus(report: HostReport) -> HostReport:
    """Return the report with the names of GPUs that only the PCI bus shows, from the tables."""
    if isinstance(report.gpus, Missing) or all(gpu.name or not gpu.pci_id for gpu in report.gpus.value):
        return report
    facts = load_facts()

    def named(gpu: Gpu) -> Gpu:
        device = None if gpu.name else facts.gpu_pci.device(gpu.pci_id)
        if device is None:
            return gpu
        return replace(gpu, name=device.name, compute_capability=gpu.compute_capability or device.capability)

    gpus = tuple(map(named, report.gpus.value))
    origin = report.gpus.origin
    told = origin if gpus == report.gpus.value else f"{origin}, names by PCI id"
    return replace(report, gpus=replace(report.gpus, value=gpus, origin=told))
