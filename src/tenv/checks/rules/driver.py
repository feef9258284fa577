"""Whether a program built with a CUDA toolkit runs on this driver.

Compiling needs no driver; these rules are about running alone. Drivers are compared within one platform's numbering:
under WSL the driver is the one of Windows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from tenv.checks.rules.common import KnownGpu, compiled_for, doubt
from tenv.checks.rules.interface import Finding, Scope, Severity, Unknown
from tenv.core.versions import Version
from tenv.facts.cuda_driver import CudaDriverTable, Forward, ForwardVerdict, Minimum
from tenv.host.cuda_api import OVERRIDE
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.report import HostReport

if TYPE_CHECKING:
    from tenv.facts.cuda_gpu_arch import GpuArchTable

__all__ = [
    "FORWARD",
    "LIMITED",
    "TOO_OLD",
    "UNLISTED",
    "UNREAD",
    "USELESS",
    "DriverVerdict",
    "Verdict",
    "driver_of",
    "judge",
    "of_windows",
    "useless_override",
]

UNREAD = "TE101"
LIMITED = "TE102"
TOO_OLD = "TE103"
UNLISTED = "TE104"
FORWARD = "TE105"
USELESS = "TE107"


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
        native: The oldest driver that knows all of the toolkit's CUDA version; None when none is known.
    """

    verdict: Verdict
    minimum: Minimum | None
    finding: Finding | None
    run: bool
    native: Minimum | None = None


def judge(
    cuda: Version | None,
    driver: Fact[Version] | Missing,
    table: CudaDriverTable,
    windows: bool,
    gpus: Sequence[KnownGpu] = (),
    archs: "GpuArchTable | None" = None,
) -> DriverVerdict:
    """Judge a driver against a toolkit.

    Args:
        cuda: The version of the toolkit; None when there is none, so that no driver is needed.
        driver: The kernel driver's version.
        table: What NVIDIA says about the two.
        windows: Whether the driver is one for Windows; true under WSL too.
        gpus: The GPUs of the machine; forward compatibility is open to data-centre GPUs alone.
        archs: For which GPUs toolkits compile; a newer driver is no way out for a GPU that the toolkit has dropped.

    Returns:
        The verdict. Without forward compatibility a driver runs a toolkit's programs exactly when it is not older than
        `DriverVerdict.minimum`.
    """
    if cuda is None:
        return DriverVerdict(Verdict.NATIVE, None, None, run=True)
    minimum, native = table.minimum(cuda, windows), table.native(cuda, windows)
    if minimum is None:
        return DriverVerdict(Verdict.UNKNOWN, None, _unlisted(cuda, table), run=False)
    needs = _Needs(cuda, minimum, native, windows, archs)
    if isinstance(driver, Missing):
        return DriverVerdict(Verdict.UNKNOWN, minimum, _unread(needs, driver, gpus), run=False, native=native)
    if driver.value < minimum.driver:
        return _below(needs, driver, table, gpus)
    if native is not None and driver.value >= native.driver:
        return DriverVerdict(Verdict.NATIVE, minimum, None, run=True, native=native)
    return DriverVerdict(Verdict.MINOR_VERSION, minimum, _limited(needs, driver, gpus), run=True, native=native)


def of_windows(host: HostReport) -> bool:
    """Tell whether a machine's driver is one for Windows, as it is under WSL too."""
    windows = isinstance(host.platform, Fact) and host.platform.value.startswith("win-")
    return windows or (isinstance(host.wsl, Fact) and host.wsl.value)


def driver_of(host: HostReport, table: CudaDriverTable, windows: bool) -> Fact[Version] | Missing:
    """Return the driver by which a machine is judged.

    Where none could be read and ``CONDA_OVERRIDE_CUDA`` says which CUDA the driver offers, it is the oldest driver that
    does, or where no toolkit has that number (drivers of branch 565 say 12.7), the oldest that offers the toolkit
    before it. A driver that was read is stronger than a version; set to nothing, the variable says that there is none.
    """
    if isinstance(host.cuda, Missing) and host.cuda.kind is ReasonKind.NO_CUDA:
        return host.cuda
    if isinstance(host.driver, Fact) or isinstance(host.cuda, Missing) or host.cuda.kind is not OriginKind.OVERRIDE:
        return host.driver
    said = host.cuda.value
    for row in table.toolkits:  # newest first
        offered = Version(row.major_minor)
        if offered.major == said.major and offered <= Version(said.major_minor):
            first = table.native(offered, windows)
            if first is not None:
                told = f"which {OVERRIDE} says" if offered == said else f"and {OVERRIDE} says {said}"
                return Fact(first.driver, f"the first that offers CUDA {offered}, {told}", OriginKind.DERIVED)
    return host.driver


def useless_override(host: HostReport, table: CudaDriverTable, windows: bool) -> Finding | None:
    """Return what there is to say about a ``CONDA_OVERRIDE_CUDA`` that is left aside, None where it is not.

    It is left aside where it is no version, and where it should stand for a driver that could not be read and is a
    version of which the table knows no driver.
    """
    if isinstance(host.cuda, Missing):
        if host.cuda.kind is not ReasonKind.NO_VERSION:
            return None
        message, evidence = "is no version of CUDA, so nothing follows from it", host.cuda.reason
    else:
        if host.cuda.kind is not OriginKind.OVERRIDE or isinstance(driver_of(host, table, windows), Fact):
            return None
        newest, oldest = table.toolkits[0].major_minor, table.toolkits[-1].major_minor
        message = f"stands for no driver that is known: the table of drivers goes from CUDA {oldest} to {newest}"
        evidence = f"{OVERRIDE} is {host.cuda.value}"
    return Finding(
        code=USELESS,
        severity=Severity.WARNING,
        subject=OVERRIDE,
        message=message,
        evidence=evidence,
        source="docs/host.md: it means what it means to conda and pixi, the CUDA version that the driver offers",
        fix=(
            f"export {OVERRIDE}=12.4 (the CUDA version at the head of what nvidia-smi prints), or set it to nothing "
            "for a machine without CUDA, or unset it"
        ),
    )


@dataclass(frozen=True, slots=True)
class _Needs:
    """What a toolkit needs of a driver."""

    cuda: Version
    minimum: Minimum
    native: Minimum | None
    windows: bool
    archs: "GpuArchTable | None"

    def fix(self, gpus: Sequence[KnownGpu], fix: str) -> str:
        """Return a fix; another where the toolkit has dropped all GPUs, whose last driver may be older than its own."""
        row = self.archs.archs(self.cuda) if self.archs else None
        known = [gpu.capability for gpu in gpus if gpu.capability is not None]
        if self.archs is None or row is None or not known or len(known) < len(gpus) or not row.has_dropped(max(known)):
            return fix
        served = self.archs.range(max(known))
        last = f"CUDA {served[1].major_minor}" if served else "an older CUDA"
        return f"choose a target with {last} or older: no driver makes the {gpus[0].name} run CUDA {self.cuda} (TE201)"

    def driver(self) -> str:
        """Return the driver that is asked for, in words."""
        # Under WSL a Linux driver would hide the library that leads to the Windows one.
        return f"NVIDIA driver {self.minimum.driver} or newer" + (" for Windows (under WSL too)" * self.windows)

    def better(self) -> str:
        """Return from which driver on nothing is missing, where that is a newer one."""
        if self.native is None or self.native.driver <= self.minimum.driver:
            return ""
        knows = f"which knows all of CUDA {self.cuda.major_minor}{doubt(self.native.basis)}"
        return f" (better {self.native.driver} or newer, {knows})"


def _unread(needs: _Needs, driver: Missing, gpus: Sequence[KnownGpu]) -> Finding:
    names = ", ".join(dict.fromkeys(gpu.name for gpu in gpus))
    fix = (
        f"run the programs on a machine with {needs.driver()}, or pass `--build-only` to be answered for building alone"
    )
    install = f"install {needs.driver()}{needs.better()}, and restart the machine"
    if driver.kind is ReasonKind.JETSON:
        install = f"install a JetPack with CUDA {needs.cuda.major_minor} or newer: the driver of a Jetson comes with it"
    return Finding(
        code=UNREAD,
        severity=Severity.WARNING,
        subject=f"CUDA {needs.cuda}",
        message=(
            f"no NVIDIA driver could be read {f'for the {names} of this machine' if names else 'here'}: building needs "
            f"none, but running needs {needs.driver()}{doubt(needs.minimum.basis)}"
        ),
        evidence=driver.reason,
        source=needs.minimum.basis.source,
        fix=needs.fix(gpus, install if names else fix),
        unknown=Unknown(Scope.RUN, "driver"),
    )


def _limited(needs: _Needs, driver: Fact[Version], gpus: Sequence[KnownGpu]) -> Finding:
    cuda, minimum, native, source = needs.cuda, needs.minimum, needs.native, needs.minimum.basis.source
    if native is None:
        own, newer = f"which driver CUDA {cuda.major_minor} came with is not known", "a newer driver"
    else:
        own, newer = f"CUDA {cuda.major_minor} came with driver {native.driver}", f"driver {native.driver} or newer"
        own, source = own + doubt(native.basis), f"{source}; {native.basis.source}"
    capabilities = compiled_for(gpus, cuda, needs.archs)
    archs = f'build with TORCH_CUDA_ARCH_LIST="{";".join(map(str, capabilities))}"'
    if not capabilities:
        archs = "list the compute capability of the GPU in TORCH_CUDA_ARCH_LIST"
    return Finding(
        code=LIMITED,
        severity=Severity.NOTE,
        subject=f"CUDA {cuda}",
        message=(
            f"runs by minor-version compatibility: {own}, and any driver from {minimum.driver} on runs what was built "
            f"with CUDA {cuda.major}.x{doubt(minimum.basis)}; this driver can't compile the PTX of the newer toolkit, "
            "so code must be built for the GPU's own architecture"
        ),
        evidence=f"driver {driver.value} ({driver.origin})",
        source=source,
        fix=f"{archs}, or install {newer}",
    )


def _below(needs: _Needs, driver: Fact[Version], table: CudaDriverTable, gpus: Sequence[KnownGpu]) -> DriverVerdict:
    """Return the verdict on a driver that is older than the minimum."""
    from tenv.facts.cuda_gpu_arch import GpuClass  # noqa: PLC0415 (late: few drivers are that old)

    forward = None if needs.windows else table.forward(needs.cuda, driver.value)
    if forward is not None and forward.verdict is not ForwardVerdict.COMPATIBLE:
        forward = None
    if forward is not None and gpus and all(gpu.kind is GpuClass.DATA_CENTRE for gpu in gpus):
        verdict, finding = Verdict.FORWARD, _forward(needs, driver, forward)
    else:
        choice = _newest(driver.value, table, needs.windows)
        finding = _too_old(needs, driver, _closed(forward, gpus), choice)
        verdict, finding = Verdict.IMPOSSIBLE, replace(finding, fix=needs.fix(gpus, finding.fix))
    return DriverVerdict(verdict, needs.minimum, finding, run=verdict is Verdict.FORWARD, native=needs.native)


def _forward(needs: _Needs, driver: Fact[Version], forward: Forward) -> Finding:
    minimum = needs.minimum
    return Finding(
        code=FORWARD,
        severity=Severity.NOTE,
        subject=f"CUDA {needs.cuda}",
        message=(
            f"runs by forward compatibility alone: the driver is older than {minimum.driver}{doubt(minimum.basis)}, "
            f"and the package {forward.package} brings what it lacks, on data-centre GPUs like these"
            f"{doubt(forward.basis)}"
        ),
        evidence=f"driver {driver.value} ({driver.origin})",
        source=forward.basis.source,
        fix=(
            f"install {forward.package} (apt or dnf, from developer.download.nvidia.com/compute/cuda/repos) and put "
            "its folder first: "
            f"export LD_LIBRARY_PATH=/usr/local/cuda-{forward.cuda.major_minor}/compat:$LD_LIBRARY_PATH"
        ),
    )


def _closed(forward: Forward | None, gpus: Sequence[KnownGpu]) -> str:
    """Return why forward compatibility is no way out; nothing where no GPU is known of that could tell."""
    if forward is None or not gpus:
        return ""
    from tenv.facts.cuda_gpu_arch import GpuClass  # noqa: PLC0415

    if any(gpu.kind is GpuClass.GEFORCE for gpu in gpus):
        return (
            f"; {forward.package} does not help: forward compatibility is closed to GeForce GPUs "
            f"(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804){doubt(forward.basis)}"
        )
    return (
        f"; {forward.package} is sure to help on data-centre GPUs alone, and not all GPUs here are known as such"
        f"{doubt(forward.basis)}"
    )


def _too_old(needs: _Needs, driver: Fact[Version], closed: str, choice: str) -> Finding:
    return Finding(
        code=TOO_OLD,
        severity=Severity.ERROR,
        subject=f"CUDA {needs.cuda}",
        message=f"the driver is too old to run it: that needs {needs.driver()}{doubt(needs.minimum.basis)}{closed}",
        evidence=f"driver {driver.value} ({driver.origin})",
        source=needs.minimum.basis.source,
        fix=f"install {needs.driver()}{needs.better()}, or choose a target with {choice}",
    )


def _newest(driver: Version, table: CudaDriverTable, windows: bool) -> str:
    """Return the CUDA versions that a driver runs, in words."""
    for row in table.toolkits:  # newest first
        minimum = table.minimum(row.toolkit, windows)
        if minimum is not None and minimum.driver <= driver:
            return f"CUDA {row.major_minor} or older"
    return "an older CUDA"


def _unlisted(cuda: Version, table: CudaDriverTable) -> Finding:
    newest, oldest = table.toolkits[0].toolkit, table.toolkits[-1].toolkit
    return Finding(
        code=UNLISTED,
        severity=Severity.WARNING,
        subject=f"CUDA {cuda}",
        message="which driver it needs is not known to this version of tenv; building needs none",
        evidence=f"the table of drivers goes from CUDA {oldest.major_minor} to {newest.major_minor}",
        source="tenv/facts/data/cuda_driver.toml",
        fix="check the version of CUDA in the manifest, or install a newer tenv",
        unknown=Unknown(Scope.RUN, "cuda_driver"),
    )
