"""Whether a program built with a CUDA toolkit runs on this driver.

Compiling needs no driver; these rules are about running alone. Drivers are compared within one platform's numbering:
under WSL the driver is the one of Windows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tenv.facts.cuda_driver import CudaDriverTable, Forward, ForwardVerdict, Minimum
from tenv.facts.cuda_gpu_arch import GpuClass
from tenv.host.interface import Fact, Missing
from tenv.rules.common import cuda_of, doubt, known_gpus, on_windows
from tenv.rules.interface import Case, Finding, Severity
from tenv.versions import Version

__all__ = ["DriverVerdict", "Verdict", "driver_rule", "judge"]


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
        run: Whether the programs are known to run.
    """

    verdict: Verdict
    minimum: Minimum | None
    finding: Finding | None
    run: bool


def judge(
    cuda: Version | None,
    driver: Fact[Version] | Missing,
    table: CudaDriverTable,
    windows: bool,
    gpus: Sequence[GpuClass | None] = (),
) -> DriverVerdict:
    """Judge a driver against a toolkit.

    Args:
        cuda: The version of the toolkit; None when there is none, so that no driver is needed.
        driver: The kernel driver's version.
        table: What NVIDIA says about the two.
        windows: Whether the driver is one for Windows; true under WSL too.
        gpus: What each GPU is sold as, None for one that is not known; forward compatibility is open to data-centre
            GPUs alone.

    Returns:
        The verdict. Without forward compatibility a driver runs a toolkit's programs exactly when it is not older than
        `DriverVerdict.minimum`.
    """
    if cuda is None:
        return DriverVerdict(Verdict.NATIVE, None, None, run=True)
    minimum, native = table.minimum(cuda, windows), table.native(cuda, windows)
    if minimum is None:
        return DriverVerdict(Verdict.UNKNOWN, None, _unlisted(cuda, table), run=False)
    if isinstance(driver, Missing):
        return DriverVerdict(Verdict.UNKNOWN, minimum, _unread(cuda, driver, minimum, windows), run=False)
    if driver.value >= minimum.driver:
        return _enough(cuda, driver, minimum, native)
    forward = None if windows else table.forward(cuda, driver.value)
    return _below(cuda, driver, minimum, windows, forward, gpus)


def driver_rule(case: Case) -> Iterator[Finding]:
    """Yield what there is to say about the machine's driver and the target's CUDA."""
    wsl = case.host.wsl
    windows = on_windows(case) or (not isinstance(wsl, Missing) and wsl.value)
    gpus = [gpu.kind for gpu in known_gpus(case)]
    judged = judge(cuda_of(case), case.host.driver, case.facts.cuda_driver, windows, gpus)
    if judged.finding is not None:
        yield judged.finding


def _unread(cuda: Version, driver: Missing, minimum: Minimum, windows: bool) -> Finding:
    return Finding(
        code="TE101",
        severity=Severity.WARNING,
        subject=f"CUDA {cuda}",
        message=(
            f"no NVIDIA driver could be read here: building needs none, but running needs {_wanted(minimum, windows)}"
            f"{_doubt(minimum)}"
        ),
        evidence=driver.reason,
        source=minimum.source,
        fix=(
            f"run the programs on a machine with {_wanted(minimum, windows)}, "
            "or pass `--build-only` to be answered for building alone"
        ),
    )


def _limited(cuda: Version, driver: Fact[Version], minimum: Minimum, native: Minimum | None) -> Finding:
    if native is None:
        own, newer = f"which driver CUDA {cuda.major_minor} came with is not known", "a newer driver"
    else:
        own, newer = f"CUDA {cuda.major_minor} came with driver {native.driver}", f"driver {native.driver} or newer"
        own += _doubt(native)
    return Finding(
        code="TE102",
        severity=Severity.NOTE,
        subject=f"CUDA {cuda}",
        message=(
            f"runs by minor-version compatibility: {own}, and any driver from {minimum.driver} on runs what was built "
            f"with CUDA {cuda.major}.x{_doubt(minimum)}; this driver can't compile the PTX of the newer toolkit, so "
            "code must be built for the GPU's own architecture"
        ),
        evidence=f"driver {driver.value} ({driver.origin})",
        source=minimum.source,
        fix=f"list the compute capability of the GPU in TORCH_CUDA_ARCH_LIST, or install {newer}",
    )


def _enough(cuda: Version, driver: Fact[Version], minimum: Minimum, native: Minimum | None) -> DriverVerdict:
    """Return the verdict on a driver that is not older than the minimum."""
    if native is not None and driver.value >= native.driver:
        return DriverVerdict(Verdict.NATIVE, minimum, None, run=True)
    return DriverVerdict(Verdict.MINOR_VERSION, minimum, _limited(cuda, driver, minimum, native), run=True)


def _below(
    cuda: Version,
    driver: Fact[Version],
    minimum: Minimum,
    windows: bool,
    forward: Forward | None,
    gpus: Sequence[GpuClass | None],
) -> DriverVerdict:
    """Return the verdict on a driver that is older than the minimum."""
    if forward is None or forward.verdict is not ForwardVerdict.COMPATIBLE:
        return DriverVerdict(Verdict.IMPOSSIBLE, minimum, _too_old(cuda, driver, minimum, windows), run=False)
    if gpus and all(kind is GpuClass.DATA_CENTRE for kind in gpus):
        return DriverVerdict(Verdict.FORWARD, minimum, _forward(cuda, driver, minimum, forward), run=True)
    finding = _too_old(cuda, driver, minimum, windows, _closed(forward, gpus))
    return DriverVerdict(Verdict.IMPOSSIBLE, minimum, finding, run=False)


def _forward(cuda: Version, driver: Fact[Version], minimum: Minimum, forward: Forward) -> Finding:
    return Finding(
        code="TE105",
        severity=Severity.NOTE,
        subject=f"CUDA {cuda}",
        message=(
            f"runs by forward compatibility alone: the driver is older than {minimum.driver}{_doubt(minimum)}, and the "
            f"package {forward.package} brings what it lacks, on data-centre GPUs like these{doubt(forward.basis)}"
        ),
        evidence=f"driver {driver.value} ({driver.origin})",
        source=forward.basis.source,
        fix=(
            f"install {forward.package} and put its folder first: "
            f"export LD_LIBRARY_PATH=/usr/local/cuda-{forward.cuda.major_minor}/compat:$LD_LIBRARY_PATH"
        ),
    )


def _closed(forward: Forward, gpus: Sequence[GpuClass | None]) -> str:
    """Return why forward compatibility is no way out; nothing where no GPU is known of that could tell."""
    if GpuClass.GEFORCE in gpus:
        return (
            f"; {forward.package} does not help: forward compatibility is closed to GeForce GPUs "
            "(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)"
        )
    if gpus:
        return f"; {forward.package} is sure to help on data-centre GPUs alone, and not all GPUs here are known as such"
    return ""


def _too_old(cuda: Version, driver: Fact[Version], minimum: Minimum, windows: bool, more: str = "") -> Finding:
    return Finding(
        code="TE103",
        severity=Severity.ERROR,
        subject=f"CUDA {cuda}",
        message=f"the driver is too old to run it: that needs {_wanted(minimum, windows)}{_doubt(minimum)}{more}",
        evidence=f"driver {driver.value} ({driver.origin})",
        source=minimum.source,
        fix=f"install {_wanted(minimum, windows)}, or choose a target with an older CUDA",
    )


def _unlisted(cuda: Version, table: CudaDriverTable) -> Finding:
    newest, oldest = table.toolkits[0].toolkit, table.toolkits[-1].toolkit
    return Finding(
        code="TE104",
        severity=Severity.WARNING,
        subject=f"CUDA {cuda}",
        message="which driver it needs is not known to this version of tenv; building needs none",
        evidence=f"the table of drivers goes from CUDA {oldest.major_minor} to {newest.major_minor}",
        source="tenv/facts/data/cuda_driver.toml",
        fix="check the version of CUDA in the manifest, or install a newer tenv",
    )


def _wanted(minimum: Minimum, windows: bool) -> str:
    # Under WSL a Linux driver would hide the library that leads to the Windows one.
    return f"NVIDIA driver {minimum.driver} or newer" + (" for Windows (under WSL too)" if windows else "")


def _doubt(minimum: Minimum) -> str:
    if minimum.confirmed:
        return ""
    return f" (not confirmed: {minimum.note.rstrip('.')})" if minimum.note else " (not confirmed)"
