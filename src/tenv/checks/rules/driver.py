"""Judge a driver against a CUDA toolkit, without regard to GPUs and the loader.

Compiling needs no driver; these rules are only about running. Drivers are compared within one platform's numbering:
under WSL, the driver is the Windows driver. The finding decides; `DriverVerdict` names it in one word.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from tenv.checks.rules import driver_findings as words
from tenv.checks.rules.common import KnownGpu, cuda_of, identify
from tenv.checks.rules.driver_findings import Need
from tenv.checks.rules.interface import Case, Finding
from tenv.checks.rules.judged_driver import driver_of, of_windows, offered_cuda, on_jetson, useless_override
from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.facts.cuda_driver import CudaDriverTable, Minimum
from tenv.facts.forward_compat import ForwardVerdict
from tenv.facts.tables import Facts
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.report import Compat, HostReport, LibcudaKind, ModuleKind
from tenv.targets.manifest import Manifest
from tenv.targets.order import takes_toolkit

if TYPE_CHECKING:
    from tenv.facts.cuda_gpu_arch import GpuArchTable
    from tenv.facts.gpu_driver import GpuDriverTable


class Verdict(StrEnum):
    """How a driver supports a toolkit."""

    NATIVE = "native"
    MINOR_VERSION = "minor-version"
    FORWARD = "forward"
    IMPOSSIBLE = "impossible"
    UNKNOWN = "unknown"


_VERDICTS = {
    words.UNREAD: Verdict.UNKNOWN,
    words.UNLISTED: Verdict.UNKNOWN,
    words.LIMITED: Verdict.MINOR_VERSION,
    words.FORWARD: Verdict.FORWARD,
    words.TOO_OLD: Verdict.IMPOSSIBLE,
}


@dataclass(frozen=True, slots=True)
class DriverVerdict:
    """How a driver supports a toolkit."""

    verdict: Verdict
    """The support."""
    minimum: Minimum | None = None
    """The oldest driver that the toolkit's programs run on; None if they need none or it is unknown."""
    native: Minimum | None = None
    """The oldest driver that supports all of the toolkit's CUDA version; None if unknown."""


_UNREPORTED = Missing.because(ReasonKind.UNREPORTED)


@dataclass(frozen=True, slots=True)
class DriverSurroundings:
    """The other values of a host that decide how its driver supports a toolkit."""

    windows: bool = False
    """Whether the driver is a Windows driver, as under WSL."""
    jetson: bool = False
    """Whether the host is a Jetson, whose driver is part of its system."""
    container: str = ""
    """The kind of container; an empty string outside one."""
    offered: Version | None = None
    """The newest CUDA that the driver's library reports; None if it was not asked."""
    compat: Fact[Compat] | Missing = field(default=_UNREPORTED)
    """The libcuda that the loader finds before the driver's own."""
    brings_compat: bool = False
    """Whether the target brings a cuda-compat, which activation puts first if it helps."""
    module: Fact[ModuleKind] | Missing = field(default=_UNREPORTED)
    """The kind of the loaded kernel module."""


def judge_driver(
    cuda: Version | None,
    driver: Fact[Version] | Missing,
    table: CudaDriverTable,
    around: DriverSurroundings,
    gpus: Sequence[KnownGpu] = (),
    archs: "GpuArchTable | None" = None,
    generations: "GpuDriverTable | None" = None,
) -> Finding | None:
    """Judge a driver against a toolkit.

    Args:
        cuda: The version of the toolkit; None if there is none, so that no driver is needed.
        driver: The kernel driver's version.
        table: NVIDIA's minimum drivers.
        around: The other values of the host that matter.
        gpus: The GPUs of the host. Only data-center GPUs and Jetsons support forward compatibility.
        archs: For which GPUs toolkits compile. A newer driver does not help a GPU that the toolkit no longer supports.
        generations: Which drivers support a GPU. No fix advises a driver that drops one.

    Returns:
        The finding; None if the driver supports the toolkit fully. Without forward compatibility, a driver runs a
        toolkit's programs exactly if it is not older than the table's minimum.
    """
    if cuda is None:
        return None
    minimum, native = table.minimum(cuda, around.windows), table.native(cuda, around.windows)
    if minimum is None:
        return words.unlisted(cuda, table)
    need = Need(cuda, minimum, native, around.windows, around.jetson, tuple(gpus), archs, generations)
    if isinstance(driver, Missing):
        return words.unread(need, driver, around.container)
    if driver.value < minimum.driver:
        return _below(need, driver, table, around)
    if native is not None and (driver.value >= native.driver or _is_native(cuda, driver.value, native, around)):
        return None
    return words.limited(need, driver)


def judge_on_host(
    cuda: Version | None, host: HostReport, facts: Facts, manifest: Manifest | None = None
) -> Finding | None:
    """Judge a host's driver against a toolkit.

    Args:
        cuda: The version of the toolkit; None if the target has none.
        host: The host.
        facts: The tables.
        manifest: The target's manifest; None to judge only a toolkit.

    Returns:
        The finding; None if the driver supports the toolkit fully.
    """
    if cuda is None:
        return None
    driver, table = driver_of(host, facts), facts.cuda_driver
    around = DriverSurroundings(
        windows=of_windows(host),
        jetson=on_jetson(host, facts),
        container=host.container.value if isinstance(host.container, Fact) else "",
        offered=offered_cuda(host),
        compat=host.compat,
        brings_compat=manifest is not None and _brings_compat(manifest),
        module=host.module,
    )
    found = judge_driver(cuda, driver, table, around)
    if found is None or isinstance(host.gpus, Missing) or not host.gpus.value:
        return found  # the GPU tables stay unread
    gpus = [identify(gpu, facts) for gpu in host.gpus.value]
    return judge_driver(cuda, driver, table, around, gpus, facts.cuda_gpu_arch, facts.gpu_driver)


def support(finding: Finding | None) -> Verdict:
    """Return how a driver supports a toolkit by the finding of `judge_driver`."""
    return _VERDICTS[finding.code] if finding else Verdict.NATIVE


def verdict_of(case: Case, finding: Finding | None) -> DriverVerdict:
    """Return how a host's driver supports the target's CUDA.

    The support is unknown if the target uses the host's toolkit and the host has none.

    Args:
        case: The case.
        finding: The finding of `driver_rule`; None if it has none.
    """
    cuda = cuda_of(case)
    if cuda is None:
        return DriverVerdict(Verdict.UNKNOWN if takes_toolkit(case.manifest) else Verdict.NATIVE)
    table, windows = case.facts.cuda_driver, of_windows(case.host)
    minimum = table.minimum(cuda, windows)
    return DriverVerdict(support(finding), minimum, table.native(cuda, windows) if minimum else None)


def driver_rule(case: Case) -> Iterator[Finding]:
    """Yield the finding about the host's driver and the target's CUDA."""
    if (finding := judge_on_host(cuda_of(case), case.host, case.facts, case.manifest)) is not None:
        yield finding


def override_rule(case: Case) -> Iterator[Finding]:
    """Yield a warning if ``CONDA_OVERRIDE_CUDA`` is unusable."""
    if (finding := useless_override(case.host, case.facts)) is not None:
        yield finding


def _brings_compat(manifest: Manifest) -> bool:
    """Return whether a target brings a cuda-compat, which activation puts first if the driver needs it."""
    return any(name.startswith("cuda-compat") for name in (*manifest.dependencies, *manifest.archives))


def _is_native(cuda: Version, driver: Version, native: Minimum, around: DriverSurroundings) -> bool:
    """Return whether a driver of the toolkit's own branch reports the toolkit's CUDA."""
    offers = around.offered is not None and around.offered >= Version(cuda.major_minor)
    return offers and driver.major == native.driver.major


def _below(need: Need, driver: Fact[Version], table: CudaDriverTable, around: DriverSurroundings) -> Finding:
    """Return the finding about a driver older than the minimum."""
    from tenv.facts.cuda_gpu_arch import GpuClass  # late: few drivers are that old

    opened = isinstance(around.module, Fact) and around.module.value is ModuleKind.OPEN
    forward = None if need.windows else table.forward.find(need.cuda, driver.value, opened)
    if forward is not None and forward.verdict is not ForwardVerdict.COMPATIBLE:
        forward = None
    open_to = (GpuClass.DATA_CENTRE, GpuClass.JETSON)
    if need.native is not None and need.are_dropped_by(need.native.driver):
        forward = None  # the package's branch supports no GPU of the host
    if forward is not None and need.gpus and all(gpu.kind in open_to for gpu in need.gpus):
        return words.forward(need, driver, forward, _place(need, driver, around), around.compat)
    return words.too_old(need, driver, table, forward)


def _place(need: Need, driver: Fact[Version], around: DriverSurroundings) -> words.CompatPlace:
    """Return where the cuda-compat that a driver needs is."""
    if around.brings_compat:
        return words.CompatPlace.BROUGHT
    compat = around.compat
    if isinstance(compat, Fact):
        of_package = compat.value.kind is LibcudaKind.CUDA_COMPAT
        return (
            words.CompatPlace.FIRST
            if of_package and compat.value.version >= need.minimum.driver
            else words.CompatPlace.ABSENT
        )
    if around.offered is not None and around.offered < Version(need.cuda.major_minor):
        return words.CompatPlace.ABSENT  # the libcuda that comes first reports less
    absent = compat.kind in (ReasonKind.DRIVERS_OWN, ReasonKind.NONE) and driver.kind is not OriginKind.ASSUMED
    return words.CompatPlace.ABSENT if absent else words.CompatPlace.UNKNOWN
