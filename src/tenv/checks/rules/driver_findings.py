"""The findings about a driver and a toolkit: TE101 to TE105."""

from enum import Enum, auto
from typing import TYPE_CHECKING

from tenv.checks.rules.common import KnownGpu, compiled_for, doubt
from tenv.checks.rules.interface import Finding, Scope, Severity, Unknown
from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.facts.cuda_driver import CudaDriverTable, Minimum
from tenv.facts.forward_compat import ForwardCompatibility
from tenv.host.interface import Fact, Missing, ReasonKind
from tenv.host.report import Compat

if TYPE_CHECKING:
    from tenv.facts.cuda_gpu_arch import GpuArchTable
    from tenv.facts.gpu_driver import Generation, GpuDriverTable, JetsonLinux

UNREAD = "TE101"
LIMITED = "TE102"
TOO_OLD = "TE103"
UNLISTED = "TE104"
FORWARD = "TE105"

CODES = (UNREAD, LIMITED, TOO_OLD, UNLISTED, FORWARD)
"""At most one of them is reported for a driver and a CUDA release."""

_START = {
    "docker": "start the container with the GPU: `docker run --gpus all …`",
    "podman": "start the container with the GPU: `podman run --device nvidia.com/gpu=all …`",
    "apptainer": "start the container with the GPU: `apptainer exec --nv …`",
    "singularity": "start the container with the GPU: `singularity exec --nv …`",
    "kubernetes": "request the GPU in the pod: `resources: {limits: {nvidia.com/gpu: 1}}`",
}
_ANY_START = "start the container with the GPU (`--gpus all` for docker, `--nv` for apptainer)"


class CompatPlace(Enum):
    """Where the cuda-compat that a driver needs is."""

    FIRST = auto()
    """Before the driver's own library: programs load it."""
    BROUGHT = auto()
    """In the environment, whose activation puts it first."""
    ABSENT = auto()
    """Not in the loader's search path."""
    UNKNOWN = auto()
    """Not detected."""


@dataclass(frozen=True, slots=True)
class Need:
    """The requirements of a toolkit on the driver of a host."""

    cuda: Version
    """The version of the toolkit."""
    minimum: Minimum
    """The oldest driver that its programs run on."""
    native: Minimum | None
    """The oldest driver that supports all of it; None if unknown."""
    windows: bool
    """Whether the driver is a Windows driver."""
    jetson: bool
    """Whether the host is a Jetson."""
    gpus: tuple[KnownGpu, ...]
    """The GPUs of the host."""
    archs: "GpuArchTable | None"
    """For which GPUs toolkits compile; None if not read."""
    generations: "GpuDriverTable | None"
    """Which drivers support a GPU; None if not read."""

    def install(self) -> str:
        """Return the fix: a sufficient driver, or another target if there is none."""
        older = self.older_target()
        if older:
            return older
        if self.jetson:
            return self.of_jetson()
        return f"install {self.driver()}{self.better()}, and reboot"

    def of_jetson(self) -> str:
        """Return the fix on a Jetson, whose driver is part of its system: a JetPack, or another target."""
        row = self._jetpack()
        if self.generations is not None and self.gpus and row is None:
            return (
                "choose a target with an older CUDA: no JetPack that tenv knows offers CUDA "
                f"{self.cuda.major_minor} on the {self.gpus[0].name}"
            )
        named = f"JetPack {row.jetpack} or newer" if row else f"a JetPack with CUDA {self.cuda.major_minor} or newer"
        return f"install {named}, which brings the driver of a Jetson"

    def _jetpack(self) -> "JetsonLinux | None":
        known = [gpu.capability for gpu in self.gpus if gpu.capability is not None]
        return (
            self.generations.jetpack_with(Version(self.cuda.major_minor), known) if self.generations and known else None
        )

    def driver(self) -> str:
        """Return the required driver as text; on a Jetson, the JetPack."""
        if self.jetson:
            row = self._jetpack()
            return f"JetPack {row.jetpack} or newer" if row else f"a JetPack with CUDA {self.cuda.major_minor} or newer"
        # Under WSL, a Linux driver hides the library that loads the Windows driver.
        where = " for Windows (under WSL too)" * self.windows
        ending = self._ending()
        most = f" (older than {ending[1].ends(self.windows)} for the {ending[0].name})" if ending else ""
        return f"NVIDIA driver {self.minimum.driver} or newer{where}{most}"

    def better(self) -> str:
        """Return the first driver with full support if it is newer and supports all GPUs."""
        if self.native is None or self.native.driver <= self.minimum.driver or self._ends_before(self.native.driver):
            return ""
        knows = f"which supports all of CUDA {self.cuda.major_minor}{doubt(self.native.basis)}"
        return f" (better {self.native.driver} or newer, {knows})"

    def newer(self) -> str:
        """Return the toolkit's own driver as advice; an empty string if it no longer supports a GPU."""
        if self.native is None:
            return ", or install a newer driver" if self._ending() is None and not self.jetson else ""
        if self.jetson or self._ends_before(self.native.driver):
            return ""
        return f", or install driver {self.native.driver} or newer"

    def are_dropped_by(self, driver: Version) -> bool:
        """Return whether a driver is too new for all GPUs of the host."""
        if self.generations is None or not self.gpus:
            return False
        rows = [self.generations.generation(gpu.capability) if gpu.capability else None for gpu in self.gpus]
        return all(row is not None and row.has_ended(driver, self.windows) for row in rows)

    def older_target(self) -> str:
        """Return the fix if no driver runs this CUDA on the GPUs; an empty string if one does."""
        row = self.archs.archs(self.cuda) if self.archs else None
        known = [gpu.capability for gpu in self.gpus if gpu.capability is not None]
        complete = row is not None and known and len(known) == len(self.gpus)
        if self.archs is None or row is None or not complete or not row.has_dropped(max(known)):
            ending = self._ending()
            if ending is None or not self._ends_before(self.minimum.driver):
                return ""
            return (
                f"choose a target with an older CUDA: the drivers that run CUDA {self.cuda} no longer support the "
                f"{ending[0].name} (TE108)"
            )
        served = self.archs.range(max(known))
        last = f"CUDA {served[1].major_minor}" if served else "an older CUDA"
        none = f"no driver runs CUDA {self.cuda} on the {self.gpus[0].name} (TE201)"
        return f"choose a target with {last} or older: {none}"

    def _ending(self) -> "tuple[KnownGpu, Generation] | None":
        """Return the GPU that drivers stop supporting first, with its row; None if the newest drivers support all."""
        if self.generations is None:
            return None
        rows = [
            (gpu, row)
            for gpu in self.gpus
            if gpu.capability is not None and (row := self.generations.generation(gpu.capability)) is not None
        ]
        ends = [(row.ends(self.windows), gpu, row) for gpu, row in rows]
        soonest = min(((end, gpu, row) for end, gpu, row in ends if end is not None), key=_first, default=None)
        return (soonest[1], soonest[2]) if soonest else None

    def _ends_before(self, driver: Version) -> bool:
        """Return whether a driver is too new for a GPU of the host."""
        ending = self._ending()
        return ending is not None and ending[1].has_ended(driver, self.windows)


def _first(item: "tuple[Version, KnownGpu, Generation]") -> Version:
    return item[0]


def unread(need: Need, driver: Missing, container: str) -> Finding:
    """Return the finding if no driver was detected."""
    names = ", ".join(dict.fromkeys(gpu.name for gpu in need.gpus))
    alone = "or pass `--build-only` to judge only the build"
    run = f"run the programs on a machine with {need.driver()}, {alone}"
    if container:
        fix = f"{_START.get(container, _ANY_START)}, {alone}"
    elif need.jetson or driver.kind is ReasonKind.JETSON:
        fix = need.of_jetson()
    else:
        fix = need.install() if names else need.older_target() or run
    return Finding(
        code=UNREAD,
        severity=Severity.WARNING,
        subject=f"CUDA {need.cuda}",
        message=(
            f"no NVIDIA driver was detected {f'for the {names} of this host' if names else 'here'}: building "
            f"needs none, running needs {need.driver()}{doubt(need.minimum.basis)}"
        ),
        evidence=driver.reason,
        source=need.minimum.basis.source,
        fix=fix,
        unknown=Unknown(Scope.RUN, "driver"),
    )


def _evidence(need: Need, driver: Fact[Version]) -> str:
    """Return the driver with its origin; on a Jetson, which is judged by a desktop driver, its origin alone."""
    return f"the driver of a Jetson: {driver.origin}" if need.jetson else f"driver {driver.value} ({driver.origin})"


def limited(need: Need, driver: Fact[Version]) -> Finding:
    """Return the finding about minor-version compatibility."""
    cuda, minimum, native, source = need.cuda, need.minimum, need.native, need.minimum.basis.source
    if native is None:
        own = f"the driver that CUDA {cuda.major_minor} shipped with is unknown"
    else:
        own = f"CUDA {cuda.major_minor} shipped with driver {native.driver}{doubt(native.basis)}"
        source = f"{source}; {native.basis.source}"
    own += (
        f", and any driver from {minimum.driver} on runs what was built with CUDA {cuda.major}.x{doubt(minimum.basis)}"
    )
    if need.jetson:
        own = f"the driver of this JetPack offers an older CUDA {cuda.major}.x"
    capabilities = compiled_for(need.gpus, cuda, need.archs)
    archs = f'build with TORCH_CUDA_ARCH_LIST="{";".join(map(str, capabilities))}"'
    if not capabilities:
        archs = "list the compute capability of the GPU in TORCH_CUDA_ARCH_LIST"
    return Finding(
        code=LIMITED,
        severity=Severity.NOTE,
        subject=f"CUDA {cuda}",
        message=(
            f"runs by minor-version compatibility: {own}; this driver can't compile the PTX of the newer toolkit, "
            "so code must be built for the GPU's own architecture"
        ),
        evidence=_evidence(need, driver),
        source=source,
        fix=f"{archs}{need.newer()}",
    )


def forward(
    need: Need, driver: Fact[Version], row: ForwardCompatibility, place: CompatPlace, compat: Fact[Compat] | Missing
) -> Finding:
    """Return the finding about forward compatibility: programs run only if a cuda-compat is loaded first."""
    reason = (
        f"the driver is older than {need.minimum.driver}{doubt(need.minimum.basis)}, and the package {row.package} "
        f"brings what it lacks, on data-centre GPUs like these{doubt(row.basis)}"
    )
    if need.jetson:
        reason = f"the driver of this JetPack offers an older CUDA than {need.cuda.major_minor}"
    effects = {
        CompatPlace.FIRST: "runs only by forward compatibility",
        CompatPlace.BROUGHT: "runs only by forward compatibility",
        CompatPlace.ABSENT: "runs only by forward compatibility, and no suitable cuda-compat is loaded first here",
        CompatPlace.UNKNOWN: "runs only by forward compatibility; the cuda-compat that is loaded first is unknown",
    }
    evidence = _evidence(need, driver)
    if place is CompatPlace.FIRST and isinstance(compat, Fact):
        evidence = f"{evidence}; cuda-compat of driver {compat.value.version}: {compat.value.path}"
    elif isinstance(compat, Missing):
        evidence = f"{evidence}; cuda-compat: {compat.reason}"
    fix = (
        f"install {row.package} (apt or dnf, from developer.download.nvidia.com/compute/cuda/repos) and put its folder "
        f"first: export LD_LIBRARY_PATH=/usr/local/cuda-{row.cuda.major_minor}/compat:$LD_LIBRARY_PATH"
    )
    if need.jetson:
        fix = f"{need.of_jetson()}; or install the {row.package} that NVIDIA makes for Jetsons"
    fixes = {
        CompatPlace.FIRST: "nothing: a suitable cuda-compat is already loaded first",
        CompatPlace.BROUGHT: "nothing: the environment brings a cuda-compat and loads it first",
    }
    severities = {CompatPlace.ABSENT: Severity.ERROR, CompatPlace.UNKNOWN: Severity.WARNING}
    open_ = "compat" if place is CompatPlace.UNKNOWN else ""
    if not row.listed and place is not CompatPlace.ABSENT:
        open_ = open_ or "cuda_driver"
    return Finding(
        code=FORWARD,
        severity=Severity.WARNING if open_ else severities.get(place, Severity.NOTE),
        subject=f"CUDA {need.cuda}",
        message=f"{effects[place]}: {reason}",
        evidence=evidence,
        source=row.basis.source,
        fix=fixes.get(place, fix),
        unknown=Unknown(Scope.RUN, open_) if open_ else None,
    )


def too_old(need: Need, driver: Fact[Version], table: CudaDriverTable, forward: ForwardCompatibility | None) -> Finding:
    """Return the finding about a driver that is too old and that no package helps."""
    closed, choice = _closed(forward, need.gpus), _newest(driver.value, table, need.windows)
    fix = need.install()
    if not fix.startswith("choose"):
        fix = f"{fix.removesuffix(', and reboot')}, or choose a target with {choice}"
    return Finding(
        code=TOO_OLD,
        severity=Severity.ERROR,
        subject=f"CUDA {need.cuda}",
        message=f"the driver is too old: running needs {need.driver()}{doubt(need.minimum.basis)}{closed}",
        evidence=_evidence(need, driver),
        source=need.minimum.basis.source,
        fix=fix,
    )


def unlisted(cuda: Version, table: CudaDriverTable) -> Finding:
    """Return the finding about a CUDA release without a row in the table."""
    newest, oldest = table.toolkits[0].toolkit, table.toolkits[-1].toolkit
    return Finding(
        code=UNLISTED,
        severity=Severity.WARNING,
        subject=f"CUDA {cuda}",
        message="this version of tenv does not know the driver that it needs; building needs none",
        evidence=f"the table of drivers goes from CUDA {oldest.major_minor} to {newest.major_minor}",
        source="tenv/facts/data/cuda_driver.toml",
        fix="check the version of CUDA in the manifest, or install a newer tenv",
        unknown=Unknown(Scope.RUN, "cuda_driver"),
    )


def _closed(forward: ForwardCompatibility | None, gpus: tuple[KnownGpu, ...]) -> str:
    """Return why forward compatibility does not help; an empty string if no GPU is known."""
    if forward is None or not gpus:
        return ""
    from tenv.facts.cuda_gpu_arch import GpuClass  # late: few drivers are that old

    if any(gpu.kind is GpuClass.GEFORCE for gpu in gpus):
        return (
            f"; {forward.package} does not help: GeForce GPUs do not support forward compatibility "
            f"(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804){doubt(forward.basis)}"
        )
    return (
        f"; {forward.package} is certain to help only on data-center GPUs, and not all GPUs here are known as such"
        f"{doubt(forward.basis)}"
    )


def _newest(driver: Version, table: CudaDriverTable, windows: bool) -> str:
    """Return the CUDA versions that a driver runs, as text."""
    for row in table.toolkits:  # newest first
        minimum = table.minimum(row.toolkit, windows)
        if minimum is not None and minimum.driver <= driver:
            return f"CUDA {row.major_minor} or older"
    return "an older CUDA"
