"""The parts of a CUDA toolkit that a build of PyTorch requires, and their packages."""

from collections.abc import Mapping

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Table
from tenv.core.versions import Version
from tenv.facts.interface import Basis, optional_version
from tenv.facts.table_files import Data

__all__ = ["CudaPartTable", "ToolkitPart", "read"]

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
    component: str
    files: tuple[str, ...]
    apt: str
    apt_10: str
    conda: str
    first: Version | None
    last: Version | None
    cuda_from: Version | None
    switch: str
    configures: bool
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "ToolkitPart":
        """Read one row of the data file; raises FactsError with the row's path."""
        return cls(
            name=row.required_text("name"),
            component=row.text("component"),
            files=row.strings("files"),
            apt=row.required_text("apt"),
            apt_10=row.text("apt_10"),
            conda=row.required_text("conda"),
            first=optional_version(row, "torch_from"),
            last=optional_version(row, "torch_to"),
            cuda_from=optional_version(row, "cuda_from"),
            switch=row.text("switch"),
            configures=row.flag("configures"),
            basis=Basis.read(row, sources),
        )

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

    parts: tuple[ToolkitPart, ...]


def read(data: Data) -> CudaPartTable:
    """Build the table from its rows; raises FactsError if one is invalid."""
    return CudaPartTable(tuple(ToolkitPart.read(*row) for row in data.rows("part")))
