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
    """A part of a CUDA toolkit.

    Attributes:
        name: Its common name.
        component: NVIDIA's name of it.
        files: Its files: ``libcublas``, ``cublas_v2.h``, ``ptxas``.
        apt: The package of NVIDIA's repository, with ``{V}`` for the release.
        apt_10: Its name up to CUDA 10.2 if it was another one.
        conda: The package of conda-forge.
        first: The first minor version of PyTorch that needs it; None for all.
        last: The last one; None for all.
        cuda_from: The first CUDA that has it; None for all.
        switch: The variable that turns it off, or an empty string.
        configures: Whether CMake configures without it, so that only compiling fails.
        basis: How certain this is.
    """

    name: str
    component: OptionalText
    files: tuple[str, ...]
    apt: str
    apt_10: OptionalText
    conda: str
    first: Annotated[Version | None, Column("torch_from")]
    last: Annotated[Version | None, Column("torch_to")]
    cuda_from: Version | None
    switch: OptionalText
    configures: bool
    basis: Basis

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
    """Every row of the table.

    Attributes:
        parts: The parts, in the order of messages.
    """

    parts: Annotated[tuple[ToolkitPart, ...], Rows("part")]


@dataclass(frozen=True, slots=True)
class CudaRelease:
    """A release of CUDA in NVIDIA's redist.

    Attributes:
        label: The release, three numbers (12.4.1).
        date: The day of the release, ``2024-04-02``; empty if the manifest has none.
        nvcc: The version of its compiler.
        platforms: NVIDIA's names of the platforms that it has nvcc for.
        basis: How certain this is.
    """

    label: Version
    date: OptionalText
    nvcc: Version
    platforms: tuple[str, ...]
    basis: Basis


@dataclass(frozen=True, slots=True)
class CudaComponent:
    """A component of CUDA that a build of PyTorch uses.

    Attributes:
        name: Its name in the redist manifest.
        since: The first release that it is needed of; None for the oldest.
        before: The first release that it is no longer needed of; None for none.
        platforms: NVIDIA's names of the platforms; empty for all.
        use: Its use in a build.
        basis: How certain this is.
    """

    name: str
    since: Version | None
    before: Version | None
    platforms: tuple[str, ...]
    use: str
    basis: Basis

    def belongs_to(self, release: Version, platform: str) -> bool:
        """Return whether a release has this component for one of NVIDIA's platforms."""
        inside = (self.since is None or release >= self.since) and (self.before is None or release < self.before)
        return inside and (not self.platforms or platform in self.platforms)


@dataclass(frozen=True, slots=True)
class CudaRedistTable:
    """Every row of the table.

    Attributes:
        releases: The known releases, oldest first.
        components: The components that a build of PyTorch uses, by name.
    """

    releases: Annotated[tuple[CudaRelease, ...], Rows("release", by=lambda row: row.label)]
    components: Annotated[tuple[CudaComponent, ...], Rows("component", by=lambda row: row.name)]

    def components_of(self, release: Version, platform: str) -> tuple[CudaComponent, ...]:
        """Return the components of a release that a build of PyTorch uses on one of NVIDIA's platforms."""
        return tuple(row for row in self.components if row.belongs_to(release, platform))
