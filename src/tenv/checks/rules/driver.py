"""Judge a driver against a CUDA toolkit, without regard to GPUs and the loader.

Compiling needs no driver; these rules are only about running. Drivers are compared within one platform's numbering:
under WSL, the driver is the Windows driver.
"""

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from tenv.checks.rules import driver_findings as words
from tenv.checks.rules.driver_findings import Need
from tenv.checks.rules.interface import Finding, Scope, decide
from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.facts.cuda_driver import CudaDriverTable, Minimum
from tenv.facts.forward_compat import ForwardVerdict
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.report import Compat, LibcudaKind, ModuleKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenv.checks.rules.common import KnownGpu
    from tenv.facts.cuda_gpu_arch import GpuArchTable
    from tenv.facts.gpu_driver import GpuDriverTable

__all__ = ["DriverSurroundings", "DriverVerdict", "Verdict", "judge"]


class Verdict(StrEnum):
    """How a driver supports a toolkit."""

    NATIVE = "native"
    MINOR_VERSION = "minor-version"
    FORWARD = "forward"
    IMPOSSIBLE = "impossible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DriverVerdict:
    """The verdict on one toolkit.

    Attributes:
        verdict: How the driver supports the toolkit.
        minimum: The oldest driver that its programs run on; None if they need none or it is unknown.
        finding: The finding; None if the driver supports the toolkit fully.
        native: The oldest driver that supports all of the toolkit's CUDA version; None if unknown.
    """

    verdict: Verdict
    minimum: Minimum | None
    finding: Finding | None
    native: Minimum | None = None

    @property
    def run(self) -> bool | None:
        """Whether the programs run as far as the driver and the loader decide; None if unknown."""
        return decide(Scope.RUN, [(Scope.RUN, self.finding)] if self.finding else [])


_UNREPORTED = Missing.because(ReasonKind.UNREPORTED)


@dataclass(frozen=True, slots=True)
class DriverSurroundings:
    """The other values of a host that decide how its driver supports a toolkit.

    Attributes:
        windows: Whether the driver is a Windows driver, as under WSL.
        jetson: Whether the host is a Jetson, whose driver is part of its system.
        container: The kind of container; an empty string outside one.
        offered: The newest CUDA that the driver's library reports; None if it was not asked.
        compat: The libcuda that the loader finds before the driver's own.
        brings_compat: Whether the target brings a cuda-compat, which activation puts first if it helps.
        module: The kind of the loaded kernel module.
    """

    windows: bool = False
    jetson: bool = False
    container: str = ""
    offered: Version | None = None
    compat: Fact[Compat] | Missing = field(default=_UNREPORTED)
    brings_compat: bool = False
    module: Fact[ModuleKind] | Missing = field(default=_UNREPORTED)


def judge(
    cuda: Version | None,
    driver: Fact[Version] | Missing,
    table: CudaDriverTable,
    around: DriverSurroundings,
    gpus: "Sequence[KnownGpu]" = (),
    archs: "GpuArchTable | None" = None,
    generations: "GpuDriverTable | None" = None,
) -> DriverVerdict:
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
        The verdict. Without forward compatibility, a driver runs a toolkit's programs exactly if it is not older than
        `DriverVerdict.minimum`.
    """
    if cuda is None:
        return DriverVerdict(Verdict.NATIVE, None, None)
    minimum, native = table.minimum(cuda, around.windows), table.native(cuda, around.windows)
    if minimum is None:
        return DriverVerdict(Verdict.UNKNOWN, None, words.unlisted(cuda, table))
    need = Need(cuda, minimum, native, around.windows, around.jetson, tuple(gpus), archs, generations)
    if isinstance(driver, Missing):
        return DriverVerdict(Verdict.UNKNOWN, minimum, words.unread(need, driver, around.container), native)
    if driver.value < minimum.driver:
        return _below(need, driver, table, around)
    if native is not None and (driver.value >= native.driver or _is_native(cuda, driver.value, native, around)):
        return DriverVerdict(Verdict.NATIVE, minimum, None, native)
    return DriverVerdict(Verdict.MINOR_VERSION, minimum, words.limited(need, driver), native)


def _is_native(cuda: Version, driver: Version, native: Minimum, around: DriverSurroundings) -> bool:
    """Return whether a driver of the toolkit's own branch reports the toolkit's CUDA."""
    offers = around.offered is not None and around.offered >= Version(cuda.major_minor)
    return offers and driver.major == native.driver.major


def _below(need: Need, driver: Fact[Version], table: CudaDriverTable, around: DriverSurroundings) -> DriverVerdict:
    """Return the verdict on a driver older than the minimum."""
    from tenv.facts.cuda_gpu_arch import GpuClass  # late: few drivers are that old

    opened = isinstance(around.module, Fact) and around.module.value is ModuleKind.OPEN
    forward = None if need.windows else table.forward.find(need.cuda, driver.value, opened)
    if forward is not None and forward.verdict is not ForwardVerdict.COMPATIBLE:
        forward = None
    open_to = (GpuClass.DATA_CENTRE, GpuClass.JETSON)
    if need.native is not None and need.are_dropped_by(need.native.driver):
        forward = None  # the package's branch supports no GPU of the host
    if forward is not None and need.gpus and all(gpu.kind in open_to for gpu in need.gpus):
        finding = words.forward(need, driver, forward, _place(need, driver, around), around.compat)
        return DriverVerdict(Verdict.FORWARD, need.minimum, finding, need.native)
    return DriverVerdict(Verdict.IMPOSSIBLE, need.minimum, words.too_old(need, driver, table, forward), need.native)


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
        return words.CompatPlace.ABSENT  # the libcuda that comes first says itself that it offers less
    absent = compat.kind in (ReasonKind.DRIVERS_OWN, ReasonKind.NONE) and driver.kind is not OriginKind.ASSUMED
    return words.CompatPlace.ABSENT if absent else words.CompatPlace.UNKNOWN
