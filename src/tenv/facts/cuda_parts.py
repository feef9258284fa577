"""The parts of a CUDA toolkit that a build of PyTorch requires, their packages, and NVIDIA's redist of them."""

from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column, OptionalText
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.table_files import Rows

_NEW_NAMES = Version("11.0")
_CUBLAS_LT = Version("10.1")
_TARGETS = {"libcuda": "cuda_driver", "libcufile": "cuFile"}
_NO_TARGETS = ("libcudadevrt",)


@dataclass(frozen=True, slots=True)
class ToolkitPart:
    """A part of a CUDA toolkit."""

    name: str
    """Its common name."""
    component: OptionalText
    """NVIDIA's name of it."""
    files: tuple[str, ...]
    """Its files: ``libcublas``, ``cublas_v2.h``, ``ptxas``."""
    apt: str
    """The package of NVIDIA's repository, with ``{V}`` for the release."""
    apt_10: OptionalText
    """Its name up to CUDA 10.2 if it was another one."""
    conda: str
    """The package of conda-forge."""
    first: Annotated[Version | None, Column("torch_from")]
    """The first minor version of PyTorch that needs it; None for all."""
    last: Annotated[Version | None, Column("torch_to")]
    """The last one; None for all."""
    cuda_from: Version | None
    """The first CUDA that has it; None for all."""
    switch: OptionalText
    """The variable that turns it off, or an empty string."""
    configures: bool
    """Whether CMake configures without it, so that only compiling fails."""
    basis: Basis
    """How certain this is."""

    def package(self, cuda: Version) -> str:
        """Return its package in NVIDIA's repository for apt."""
        name = self.apt_10 if self.apt_10 and cuda < _NEW_NAMES else self.apt
        return name.replace("{V}", cuda.major_minor.replace(".", "-"))

    def files_in(self, cuda: Version) -> tuple[str, ...]:
        """Return its files in a release of CUDA."""
        return tuple(file for file in self.files if file != "libcublasLt" or cuda >= _CUBLAS_LT)

    def cmake_targets(self, cuda: Version) -> tuple[str, ...]:
        """Return FindCUDAToolkit's names of its libraries, without ``CUDA::``."""
        libraries = (file for file in self.files_in(cuda) if file.startswith("lib") and file not in _NO_TARGETS)
        return () if self.configures else tuple(_TARGETS.get(file, file.removeprefix("lib")) for file in libraries)

    def needed_by(self, torch: Version) -> bool:
        """Return whether a version of PyTorch needs it."""
        minor = Version(torch.major_minor)
        return (self.first is None or minor >= self.first) and (self.last is None or minor <= self.last)


@dataclass(frozen=True, slots=True)
class CudaPartTable:
    """Every row of the table."""

    parts: Annotated[tuple[ToolkitPart, ...], Rows("part")]
    """The parts, in the order of messages."""


@dataclass(frozen=True, slots=True)
class CudaRelease:
    """A release of CUDA in NVIDIA's redist."""

    label: Version
    """The release, three numbers (12.4.1)."""
    date: OptionalText
    """The day of the release, ``2024-04-02``; empty if the manifest has none."""
    nvcc: Version
    """The version of its compiler."""
    platforms: tuple[str, ...]
    """NVIDIA's names of the platforms that it has nvcc for."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class CudaComponent:
    """A component of CUDA that a build of PyTorch uses."""

    name: str
    """Its name in the redist manifest."""
    since: Version | None
    """The first release that it is needed of; None for the oldest."""
    before: Version | None
    """The first release that it is no longer needed of; None for none."""
    platforms: tuple[str, ...]
    """NVIDIA's names of the platforms; empty for all."""
    use: str
    """Its use in a build."""
    basis: Basis
    """How certain this is."""

    def belongs_to(self, release: Version, platform: str) -> bool:
        """Return whether a release has this component for one of NVIDIA's platforms."""
        inside = (self.since is None or release >= self.since) and (self.before is None or release < self.before)
        return inside and (not self.platforms or platform in self.platforms)


@dataclass(frozen=True, slots=True)
class CudaRedistTable:
    """Every row of the table."""

    releases: Annotated[tuple[CudaRelease, ...], Rows("release", by=lambda row: row.label)]
    """The known releases, oldest first."""
    components: Annotated[tuple[CudaComponent, ...], Rows("component", by=lambda row: row.name)]
    """The components that a build of PyTorch uses, by name."""

    def components_of(self, release: Version, platform: str) -> tuple[CudaComponent, ...]:
        """Return the components of a release that a build of PyTorch uses on one of NVIDIA's platforms."""
        return tuple(row for row in self.components if row.belongs_to(release, platform))
