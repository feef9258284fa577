"""How a driver stands to a CUDA toolkit: the driver's own word, whatever the GPUs and the loader make of it.

Compiling needs no driver; these rules are about running alone. Drivers are compared within one platform's numbering:
under WSL the driver is the one of Windows.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from tenv.checks.rules import driver_findings as words
from tenv.checks.rules.driver_findings import Need
from tenv.checks.rules.interface import Finding, Scope, decide
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
    """How a driver stands to a toolkit."""

    NATIVE = "native"
    MINOR_VERSION = "minor-version"
    FORWARD = "forward"
    IMPOSSIBLE = "impossible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DriverVerdict:
    """The verdict on one toolkit.

    Attributes:
        verdict: How the driver stands to the toolkit.
        minimum: The oldest driver on which its programs run; None when they need none, or none is known.
        finding: What there is to say about it; None when all is well.
        native: The oldest driver that knows all of the toolkit's CUDA version; None when none is known.
    """

    verdict: Verdict
    minimum: Minimum | None
    finding: Finding | None
    native: Minimum | None = None

    @property
    def run(self) -> bool | None:
        """Whether the programs run, by the driver and the loader alone; None where that is not known."""
        return decide(Scope.RUN, [(Scope.RUN, self.finding)] if self.finding else [])


_UNREPORTED = Missing.because(ReasonKind.UNREPORTED)


@dataclass(frozen=True, slots=True)
class DriverSurroundings:
    """What else of a machine says how its driver stands to a toolkit.

    Attributes:
        windows: Whether the driver is one for Windows; true under WSL too.
        jetson: Whether the machine is a Jetson, whose driver comes with its system.
        container: The kind of container; an empty string outside one.
        offered: The newest CUDA that the driver's own library says it offers; None where it was not asked.
        compat: The libcuda that stands before the driver's own.
        brings_compat: Whether the target brings a cuda-compat, which activation puts first where it is of use.
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
        cuda: The version of the toolkit; None when there is none, so that no driver is needed.
        driver: The kernel driver's version.
        table: What NVIDIA says about the two.
        around: What else of the machine counts.
        gpus: The GPUs of the machine; forward compatibility is open to data-centre GPUs and Jetsons alone.
        archs: For which GPUs toolkits compile; a newer driver is no way out for a GPU that the toolkit has dropped.
        generations: Which drivers drive a GPU; none is advised that would drop one.

    Returns:
        The verdict. Without forward compatibility a driver runs a toolkit's programs exactly when it is not older than
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
    """Tell whether a driver of the toolkit's own branch says itself that it offers all of the toolkit's CUDA."""
    offers = around.offered is not None and around.offered >= Version(cuda.major_minor)
    return offers and driver.major == native.driver.major


def _below(need: Need, driver: Fact[Version], table: CudaDriverTable, around: DriverSurroundings) -> DriverVerdict:
    """Return the verdict on a driver that is older than the minimum."""
    from tenv.facts.cuda_gpu_arch import GpuClass  # late: few drivers are that old

    opened = isinstance(around.module, Fact) and around.module.value is ModuleKind.OPEN
    forward = None if need.windows else table.forward.find(need.cuda, driver.value, opened)
    if forward is not None and forward.verdict is not ForwardVerdict.COMPATIBLE:
        forward = None
    open_to = (GpuClass.DATA_CENTRE, GpuClass.JETSON)
    if need.native is not None and need.are_dropped_by(need.native.driver):
        forward = None  # the package is made from a branch that finds no GPU here
    if forward is not None and need.gpus and all(gpu.kind in open_to for gpu in need.gpus):
        finding = words.forward(need, driver, forward, _place(need, driver, around), around.compat)
        return DriverVerdict(Verdict.FORWARD, need.minimum, finding, need.native)
    return DriverVerdict(Verdict.IMPOSSIBLE, need.minimum, words.too_old(need, driver, table, forward), need.native)


def _place(need: Need, driver: Fact[Version], around: DriverSurroundings) -> words.CompatPlace:
    """Return where the cuda-compat is that a driver needs."""
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
    told = compat.kind in (ReasonKind.DRIVERS_OWN, ReasonKind.NONE) and driver.kind is not OriginKind.ASSUMED
    return words.CompatPlace.ABSENT if told else words.CompatPlace.UNKNOWN
