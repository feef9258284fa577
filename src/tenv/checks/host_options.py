"""Read the host report of this machine, or of a host that a file or assumptions describe."""

import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass
from tenv.core.errors import UsageError
from tenv.core.versions import Version
from tenv.host.interface import Fact, Missing
from tenv.targets.nearest_cuda import HostDriver

if TYPE_CHECKING:
    from tenv.host.collect import Lookup
    from tenv.host.report import Gpu, HostReport
    from tenv.host.report_json import Given
    from tenv.project.context import Context

# Late imports: `create` takes the options where it has nothing to judge


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Which host to judge if it is not this machine."""

    host_report: str = ""
    """A file from ``tenv host --json`` or a pasted report, ``-`` for standard input; empty for this machine."""
    assume_driver: str = ""
    """The kernel driver's version to assume, or an empty string."""
    assume_gpu: str = ""
    """The name of the GPU to assume, or an empty string."""
    given: "Given | None" = None
    """The content of the file if it was already read."""


def read(options: HostOptions) -> HostOptions:
    """Return the options with the report's content read from its file; raises HostReportError if it is unreadable."""
    if not options.host_report or options.given:
        return options
    from tenv.host.report_json import read_file  # late: judging this machine reads no report

    return replace(options, given=read_file(options.host_report))


def report(context: "Context", options: HostOptions, lookup: "Lookup | None" = None) -> "HostReport":
    """Return the host report that the options select.

    Args:
        context: The folder of environments and the caller's environment variables.
        options: Which host to judge.
        lookup: Finds the GPU to assume by its name.

    Raises:
        HostReportError: The report can't be read.
        UsageError: A value can't be assumed.
    """
    from tenv.host.collect import assume_cuda, assume_driver, assume_gpu, collect
    from tenv.host.cuda_api import override
    from tenv.host.places import Places

    driver = _version(options.assume_driver)
    if given := read(options).given:
        found = given.report
        # As in conda and pixi, the variable overrides the detected value.
        if (cuda := override(context.environ)) is not None:
            found = assume_cuda(found, cuda)
    else:
        found = collect(Places(environ=context.environ), context.places.environments())
    if driver is not None:
        found = assume_driver(found, driver)
    if options.assume_gpu:
        found = assume_gpu(found, options.assume_gpu, lookup or find_gpu)
    return name_gpus(found)


def with_driver(context: "Context", options: HostOptions) -> "Context":
    """Return a context whose suggestions are targets that the driver of the judged host runs.

    Raises:
        HostReportError: The report can't be read.
        UsageError: The driver can't be assumed.
    """
    from tenv.checks.rules.judged_driver import of_windows

    assumed, given = _version(options.assume_driver), read(options).given
    found = given.report if given else None
    windows = of_windows(found) if found else sys.platform == "win32"
    if assumed is not None:
        driver = HostDriver(assumed, windows, "(assumed)")
    elif found and isinstance(found.driver, Fact):
        driver = HostDriver(found.driver.value, windows, "of the reported host")
    else:
        return context
    return replace(context, places=replace(context.places, driver=driver))


def _version(text: str) -> Version | None:
    try:
        return Version(text.encode("ascii", "backslashreplace").decode()) if text else None
    except ValueError as error:
        raise UsageError(str(error), hint="pass a driver version: `--assume-driver 535.104.12`") from error


_CAPABILITY = re.compile(r"(?:sm_?|compute_?)(\d{1,2})(\d)[af]?|(\d{1,2})\.(\d)[af]?", re.ASCII | re.IGNORECASE)
"""A compute capability as the GPU has it, or an architecture as nvcc names it."""
_DEVICE = re.compile(r"(?:0x)?([0-9a-f]{4})|(?:0x)?[0-9a-f]{4}[:\s]\s*(?:0x)?[0-9a-f]{4}", re.IGNORECASE)
"""A PCI id: the device (first group) or the vendor and the device."""


def _capability(text: str) -> Version | None:
    match = _CAPABILITY.fullmatch(text)
    return Version(f"{match[1] or match[3]}.{match[2] or match[4]}") if match else None


def find_gpu(name: str) -> tuple[str, Version, str] | None:
    """Return a GPU's full name, compute capability and PCI id from the tables, None if they have no row for it.

    Args:
        name: Its name, also truncated (``GeForce GTX 108...``) or its board's name (``PG509-210``), its PCI id
            (``10de:2182``, also without the vendor), or a compute capability (``8.6``, ``sm_86``, ``compute_90a``),
            which means a GPU without a name.
    """
    from tenv.facts.gpu_names import find_by_id, find_by_name
    from tenv.facts.tables import load_facts

    facts, asked = load_facts(), name.strip()
    if capability := _capability(asked):
        rows = facts.cuda_gpu_arch
        known = rows.family(capability) is not None or rows.range(capability) is not None
        return (f"a GPU of compute capability {capability}", capability, "") if known else None
    if device := _DEVICE.fullmatch(asked):
        listed = find_by_id(f"10de:{device[1]}" if device[1] else asked, facts)
        if listed or not device[1]:
            return (listed.name, listed.capability, listed.pci_id) if listed else None
    found = find_by_name(asked, facts)
    if found is None:
        return None
    devices = facts.gpu_pci.devices if not found.pci_id else ()
    alike = (row.pci_id for row in devices if row.name == found.name and row.capability == found.capability)
    pci_id = found.pci_id or next(alike, "")
    return found.name, found.capability, pci_id


def name_gpus(report: "HostReport") -> "HostReport":
    """Return the report with names, from the tables, for GPUs that only the PCI bus shows."""
    if isinstance(report.gpus, Missing) or all(gpu.name or not gpu.pci_id for gpu in report.gpus.value):
        return report
    from tenv.facts.tables import load_facts

    facts = load_facts()

    def named(gpu: "Gpu") -> "Gpu":
        device = None if gpu.name else facts.gpu_pci.device(gpu.pci_id)
        if device is None:
            return gpu
        return replace(gpu, name=device.name, compute_capability=gpu.compute_capability or device.capability)

    gpus = tuple(map(named, report.gpus.value))
    origin = report.gpus.origin
    label = origin if gpus == report.gpus.value else f"{origin}, names by PCI id"
    return replace(report, gpus=replace(report.gpus, value=gpus, origin=label))
