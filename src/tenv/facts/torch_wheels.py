"""The torch wheels of the default index: the CUDA, the C++ and the GPU code of each release, read from the wheels."""

from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column, OptionalText
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.table_files import Data

__all__ = ["TorchWheel", "TorchWheelTable", "read"]


@dataclass(frozen=True, slots=True)
class TorchWheel:
    """One wheel of torch.

    Attributes:
        version: The release.
        platform: The platform.
        local: The local part of its version, such as ``cu130``; an empty string for none.
        cuda: The CUDA release of its compiler; None for a torch without CUDA.
        glibc: The oldest glibc that it runs on; None on Windows.
        compiler: The compiler of its C++ code; an empty string on Windows.
        cxx11_abi: Whether it has the new C++ ABI; None on Windows, which has no other.
        least_cxx: The oldest C++ standard that its headers compile with.
        default_cxx: The C++ standard that its helper for extensions adds.
        gpu_code: Its GPU code as nvcc names it.
        basis: How certain this is.
    """

    version: Version
    platform: str
    local: OptionalText
    cuda: Version | None
    glibc: Version | None
    compiler: OptionalText
    cxx11_abi: Annotated[bool | None, Column(default=None)]
    least_cxx: int
    default_cxx: int
    gpu_code: tuple[str, ...]
    basis: Basis


@dataclass(frozen=True, slots=True)
class TorchWheelTable:
    """Every row of the table.

    Attributes:
        wheels: One row per release and platform, oldest first.
    """

    wheels: tuple[TorchWheel, ...]

    def wheel(self, version: Version, platform: str) -> TorchWheel | None:
        """Return the wheel of a release; of a minor alone (``2.9``), the wheel of its newest patch; None for none."""
        minor = version.text.count(".") == 1
        found = [
            row
            for row in self.wheels
            if row.platform == platform
            if row.version == version or (minor and row.version.major_minor == version.major_minor)
        ]
        return found[-1] if found else None


def read(data: Data) -> TorchWheelTable:
    """Build the table from its rows; raises FactsError if one is invalid."""
    return TorchWheelTable(data.read("torch", TorchWheel, by=lambda row: row.version))
