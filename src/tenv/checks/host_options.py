"""Report what this machine offers, or a machine that a report or an assumption describes."""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tenv.core.errors import HostReportError, UsageError
from tenv.core.versions import Version
from tenv.facts.tables import load_facts
from tenv.host.cuda_api import override
from tenv.host.interface import Missing
from tenv.host.places import Places
from tenv.host.report import Gpu, HostReport
from tenv.project.context import Context

if TYPE_CHECKING:
    from tenv.host.assume import Lookup

__all__ = ["HostOptions", "find_gpu", "name_gpus", "read_report", "report"]


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Which host is meant, where it is not this one.

    Attributes:
        host_report: A file that ``tenv host --json`` wrote, ``-`` for standard input; empty for this machine.
        assume_driver: The kernel driver's version to assume, or an empty string.
        assume_gpu: The name of the GPU to assume, or an empty string.
    """

    host_report: str = ""
    assume_driver: str = ""
    assume_gpu: str = ""


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
    from tenv.host.assume import assume_cuda, assume_driver, assume_gpu  # noqa: PLC0415
    from tenv.host.collect import collect  # noqa: PLC0415 (late: `check-driver` asks no more than a driver)

    driver = _version(options.assume_driver)
    if options.host_report:
        found = read_report(options.host_report)
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


def read_report(name: str, stdin: TextIO | None = None) -> HostReport:
    """Return the report in a file.

    Args:
        name: The file, ``-`` for standard input.
        stdin: What stands in for standard input.

    Raises:
        HostReportError: It can't be read as a report.
    """
    from tenv.host.report_json import from_json  # noqa: PLC0415 (late: who judges this machine reads no report)

    source = "standard input" if name == "-" else name
    hint = "`tenv host --json > FILE` writes one"
    try:
        text = (stdin or sys.stdin).read() if name == "-" else Path(name).read_text(encoding="utf-8-sig")
        data = json.loads(text)
    except OSError as error:
        raise HostReportError(f"{source}: can't be read: {error.strerror or error}", hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise HostReportError(f"{source}: not JSON: {error}", hint=hint) from error
    return from_json(data, source)


def _version(text: str) -> Version | None:
    try:
        return Version(text.encode("ascii", "backslashreplace").decode()) if text else None
    except ValueError as error:
        raise UsageError(str(error), hint="give a driver's version: `--assume-driver 535.104.12`") from error


def find_gpu(name: str) -> tuple[str, Version, str] | None:
    """Return a GPU's full name, compute capability and PCI id from the tables, None when they do not have it."""
    facts = load_facts()
    gpu = facts.cuda_gpu_arch.gpu(name)
    if gpu is None:
        return None
    pci_id = next((device.pci_id for device in facts.gpu_pci.devices if device.gpu == gpu.name), "")
    return gpu.name, gpu.capability, pci_id


def name_gpus(report: HostReport) -> HostReport:
    """Return the report with the names of GPUs that only the PCI bus shows, from the tables."""
    if isinstance(report.gpus, Missing) or all(gpu.name or not gpu.pci_id for gpu in report.gpus.value):
        return report
    facts = load_facts()

    def named(gpu: Gpu) -> Gpu:
        device = None if gpu.name else facts.gpu_pci.device(gpu.pci_id)
        row = facts.cuda_gpu_arch.gpu(device.gpu) if device else None
        capability = gpu.compute_capability or (row.capability if row else None)
        return replace(gpu, name=device.name, compute_capability=capability) if device else gpu

    gpus = tuple(map(named, report.gpus.value))
    origin = report.gpus.origin
    told = origin if gpus == report.gpus.value else f"{origin}, names by PCI id"
    return replace(report, gpus=replace(report.gpus, value=gpus, origin=told))
