"""What there is to say about a driver and a toolkit: TE101 to TE105 as findings."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from tenv.checks.rules.common import KnownGpu, compiled_for, doubt
from tenv.checks.rules.interface import Finding, Scope, Severity, Unknown
from tenv.core.versions import Version
from tenv.facts.cuda_driver import CudaDriverTable, Minimum
from tenv.facts.forward_compat import ForwardCompatibility
from tenv.host.interface import Fact, Missing, ReasonKind
from tenv.host.report import Compat

if TYPE_CHECKING:
    from tenv.facts.cuda_gpu_arch import GpuArchTable
    from tenv.facts.gpu_driver import Generation, GpuDriverTable

__all__ = [
    "CODES",
    "FORWARD",
    "LIMITED",
    "TOO_OLD",
    "UNLISTED",
    "UNREAD",
    "CompatPlace",
    "Need",
    "forward",
    "limited",
    "too_old",
    "unlisted",
    "unread",
]

UNREAD = "TE101"
LIMITED = "TE102"
TOO_OLD = "TE103"
UNLISTED = "TE104"
FORWARD = "TE105"

CODES = (UNREAD, LIMITED, TOO_OLD, UNLISTED, FORWARD)
"""One of them at most is said of a driver and a CUDA, since the one stands to the other in one way."""

_START = {
    "docker": "start the container with the GPU: `docker run --gpus all …`",
    "podman": "start the container with the GPU: `podman run --device nvidia.com/gpu=all …`",
    "apptainer": "start the container with the GPU: `apptainer exec --nv …`",
    "singularity": "start the container with the GPU: `singularity exec --nv …`",
    "kubernetes": "ask for the GPU in the pod: `resources: {limits: {nvidia.com/gpu: 1}}`",
}
_ANY_START = "give the container the GPU (`--gpus all` for docker, `--nv` for apptainer)"


class CompatPlace(Enum):
    """Where the cuda-compat is that a driver needs."""

    FIRST = auto()
    """Before the driver's own library, so that programs load it."""
    BROUGHT = auto()
    """In the environment, which puts it first."""
    ABSENT = auto()
    """Not where programs would load it."""
    UNKNOWN = auto()
    """Nobody looked."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a toolkit needs of a driver on a machine.

    Attributes:
        cuda: The version of the toolkit.
        minimum: The oldest driver on which its programs run.
        native: The oldest driver that knows all of it; None when none is known.
        windows: Whether the driver is one for Windows.
        jetson: Whether it is one of a Jetson.
        gpus: The GPUs of the machine.
        archs: For which GPUs toolkits compile; None where that was not read.
        generations: Which drivers drive a GPU; None where that was not read.
    """

    cuda: Version
    minimum: Minimum
    native: Minimum | None
    windows: bool
    jetson: bool
    gpus: tuple[KnownGpu, ...]
    archs: "GpuArchTable | None"
    generations: "GpuDriverTable | None"

    def install(self) -> str:
        """Return how to come by a driver that will do, or what to do where none can."""
        older = self.older_target()
        if older:
            return older
        if self.jetson:
            return f"install a JetPack with CUDA {self.cuda.major_minor} or newer: the driver of a Jetson comes with it"
        return f"install {self.driver()}{self.better()}, and restart the machine"

    def driver(self) -> str:
        """Return the driver that is asked for, in words."""
        # Under WSL a Linux driver would hide the library that leads to the Windows one.
        where = " for Windows (under WSL too)" * self.windows
        ending = self._ending()
        most = f", older than {ending[1].ends(self.windows)}, which drops the {ending[0].name}" if ending else ""
        return f"NVIDIA driver {self.minimum.driver} or newer{where}{most}"

    def better(self) -> str:
        """Return from which driver on nothing is missing, where that is a newer one that drives all GPUs."""
        if self.native is None or self.native.driver <= self.minimum.driver or self._ends_before(self.native.driver):
            return ""
        knows = f"which knows all of CUDA {self.cuda.major_minor}{doubt(self.native.basis)}"
        return f" (better {self.native.driver} or newer, {knows})"

    def newer(self) -> str:
        """Return the driver that came with the toolkit, as advice; nothing where it would drop a GPU."""
        if self.native is None:
            return ", or install a newer driver" if self._ending() is None and not self.jetson else ""
        if self.jetson or self._ends_before(self.native.driver):
            return ""
        return f", or install driver {self.native.driver} or newer"

    def are_dropped_by(self, driver: Version) -> bool:
        """Tell whether a driver is too new for all GPUs of the machine."""
        if self.generations is None or not self.gpus:
            return False
        rows = [self.generations.generation(gpu.capability) if gpu.capability else None for gpu in self.gpus]
        return all(row is not None and row.has_ended(driver, self.windows) for row in rows)

    def older_target(self) -> str:
        """Return what to do where no driver makes the GPUs run this CUDA; an empty string where one does."""
        row = self.archs.archs(self.cuda) if self.archs else None
        known = [gpu.capability for gpu in self.gpus if gpu.capability is not None]
        told = row is not None and known and len(known) == len(self.gpus)
        if self.archs is None or row is None or not told or not row.has_dropped(max(known)):
            ending = self._ending()
            if ending is None or not self._ends_before(self.minimum.driver):
                return ""
            return (
                f"choose a target with an older CUDA: the drivers that run CUDA {self.cuda} no longer drive the "
                f"{ending[0].name} (TE108)"
            )
        served = self.archs.range(max(known))
        last = f"CUDA {served[1].major_minor}" if served else "an older CUDA"
        none = f"no driver makes the {self.gpus[0].name} run CUDA {self.cuda} (TE201)"
        return f"choose a target with {last} or older: {none}"

    def _ending(self) -> "tuple[KnownGpu, Generation] | None":
        """Return the GPU that new drivers drop first, with its row; None where all are driven by the newest."""
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
        """Tell whether a driver is too new for a GPU of the machine."""
        ending = self._ending()
        return ending is not None and ending[1].has_ended(driver, self.windows)


def _first(item: "tuple[Version, KnownGpu, Generation]") -> Version:
    return item[0]


def unread(need: Need, driver: Missing, container: str) -> Finding:
    """Return what there is to say where no driver could be read."""
    names = ", ".join(dict.fromkeys(gpu.name for gpu in need.gpus))
    alone = "or pass `--build-only` to be answered for building alone"
    run = f"run the programs on a machine with {need.driver()}, {alone}"
    if container:
        fix = f"{_START.get(container, _ANY_START)}, {alone}"
    elif need.jetson or driver.kind is ReasonKind.JETSON:
        fix = f"install a JetPack with CUDA {need.cuda.major_minor} or newer: the driver of a Jetson comes with it"
    else:
        fix = need.install() if names else need.older_target() or run
    return Finding(
        code=UNREAD,
        severity=Severity.WARNING,
        subject=f"CUDA {need.cuda}",
        message=(
            f"no NVIDIA driver could be read {f'for the {names} of this machine' if names else 'here'}: building needs "
            f"none, but running needs {need.driver()}{doubt(need.minimum.basis)}"
        ),
        evidence=driver.reason,
        source=need.minimum.basis.source,
        fix=fix,
        unknown=Unknown(Scope.RUN, "driver"),
    )


def limited(need: Need, driver: Fact[Version]) -> Finding:
    """Return what there is to say about minor-version compatibility."""
    cuda, minimum, native, source = need.cuda, need.minimum, need.native, need.minimum.basis.source
    if native is None:
        own = f"which driver CUDA {cuda.major_minor} came with is not known"
    else:
        own = f"CUDA {cuda.major_minor} came with driver {native.driver}{doubt(native.basis)}"
        source = f"{source}; {native.basis.source}"
    capabilities = compiled_for(need.gpus, cuda, need.archs)
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
        fix=f"{archs}{need.newer()}",
    )


def forward(
    need: Need, driver: Fact[Version], row: ForwardCompatibility, place: CompatPlace, compat: Fact[Compat] | Missing
) -> Finding:
    """Return what there is to say about forward compatibility: it runs where cuda-compat comes first, else not."""
    what = (
        f"the driver is older than {need.minimum.driver}{doubt(need.minimum.basis)}, and the package {row.package} "
        f"brings what it lacks, on data-centre GPUs like these{doubt(row.basis)}"
    )
    says = {
        CompatPlace.FIRST: "runs by forward compatibility alone",
        CompatPlace.BROUGHT: "runs by forward compatibility alone",
        CompatPlace.ABSENT: "runs by forward compatibility alone, and no cuda-compat that does comes first here",
        CompatPlace.UNKNOWN: "runs by forward compatibility alone; whether such a cuda-compat comes first is not known",
    }
    evidence = f"driver {driver.value} ({driver.origin})"
    if place is CompatPlace.FIRST and isinstance(compat, Fact):
        evidence = f"{evidence}; cuda-compat of driver {compat.value.version}: {compat.value.path}"
    elif isinstance(compat, Missing):
        evidence = f"{evidence}; cuda-compat: {compat.reason}"
    fix = (
        f"install {row.package} (apt or dnf, from developer.download.nvidia.com/compute/cuda/repos) and put its folder "
        f"first: export LD_LIBRARY_PATH=/usr/local/cuda-{row.cuda.major_minor}/compat:$LD_LIBRARY_PATH"
    )
    fixes = {
        CompatPlace.FIRST: "nothing: such a cuda-compat comes first here already",
        CompatPlace.BROUGHT: "nothing: the environment brings a cuda-compat and puts it first",
    }
    severities = {CompatPlace.ABSENT: Severity.ERROR, CompatPlace.UNKNOWN: Severity.WARNING}
    return Finding(
        code=FORWARD,
        severity=severities.get(place, Severity.NOTE),
        subject=f"CUDA {need.cuda}",
        message=f"{says[place]}: {what}",
        evidence=evidence,
        source=row.basis.source,
        fix=fixes.get(place, fix),
        unknown=Unknown(Scope.RUN, "compat") if place is CompatPlace.UNKNOWN else None,
    )


def too_old(need: Need, driver: Fact[Version], table: CudaDriverTable, forward: ForwardCompatibility | None) -> Finding:
    """Return what there is to say about a driver that no package helps."""
    closed, choice = _closed(forward, need.gpus), _newest(driver.value, table, need.windows)
    fix = need.install()
    if not fix.startswith("choose"):
        fix = f"{fix.removesuffix(', and restart the machine')}, or choose a target with {choice}"
    return Finding(
        code=TOO_OLD,
        severity=Severity.ERROR,
        subject=f"CUDA {need.cuda}",
        message=f"the driver is too old to run it: that needs {need.driver()}{doubt(need.minimum.basis)}{closed}",
        evidence=f"driver {driver.value} ({driver.origin})",
        source=need.minimum.basis.source,
        fix=fix,
    )


def unlisted(cuda: Version, table: CudaDriverTable) -> Finding:
    """Return what there is to say about a CUDA that the table does not have."""
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


def _closed(forward: ForwardCompatibility | None, gpus: tuple[KnownGpu, ...]) -> str:
    """Return why forward compatibility is no way out; nothing where no GPU is known of that could tell."""
    if forward is None or not gpus:
        return ""
    from tenv.facts.cuda_gpu_arch import GpuClass  # late: few drivers are that old

    if any(gpu.kind is GpuClass.GEFORCE for gpu in gpus):
        return (
            f"; {forward.package} does not help: forward compatibility is closed to GeForce GPUs "
            f"(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804){doubt(forward.basis)}"
        )
    return (
        f"; {forward.package} is sure to help on data-centre GPUs alone, and not all GPUs here are known as such"
        f"{doubt(forward.basis)}"
    )


def _newest(driver: Version, table: CudaDriverTable, windows: bool) -> str:
    """Return the CUDA versions that a driver runs, in words."""
    for row in table.toolkits:  # newest first
        minimum = table.minimum(row.toolkit, windows)
        if minimum is not None and minimum.driver <= driver:
            return f"CUDA {row.major_minor} or older"
    return "an older CUDA"
