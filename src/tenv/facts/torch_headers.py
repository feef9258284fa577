"""The torch wheels of the default index, and the parts of CUDA that torch's headers include in each minor version."""

from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column, OptionalText
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.table_files import Data, Rows

_PLATFORMS = ("linux-64", "linux-aarch64", "win-64")
_OLDEST_GLIBC = Version("2.17")  # that of the oldest wheels of CUDA 12


@dataclass(frozen=True, slots=True)
class TorchWheel:
    """One wheel of torch."""

    version: Version
    """The release."""
    platform: str
    """The platform."""
    local: OptionalText
    """The local part of its version, such as ``cu130``; an empty string for none."""
    cuda: Version | None
    """The CUDA release of its compiler; None for a torch without CUDA."""
    glibc: Version | None
    """The oldest glibc that it runs on; None on Windows."""
    compiler: OptionalText
    """The compiler of its C++ code; an empty string on Windows."""
    cxx11_abi: Annotated[bool | None, Column(default=None)]
    """Whether it has the new C++ ABI; None on Windows, which has no other."""
    least_cxx: int
    """The oldest C++ standard that its headers compile with."""
    default_cxx: int
    """The C++ standard that its helper for extensions adds."""
    gpu_code: tuple[str, ...]
    """Its GPU code as nvcc names it."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class TorchWheelTable:
    """Every row of the table."""

    wheels: Annotated[tuple[TorchWheel, ...], Rows("torch", by=lambda row: row.version)]
    """One row per release and platform, oldest first."""

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


@dataclass(frozen=True, slots=True)
class TorchHeaders:
    """The headers of a minor version of torch."""

    torch: Version
    """The minor version."""
    python: str
    """The Pythons that have a wheel."""
    parts: tuple[str, ...]
    """The parts of CUDA that torch's headers include, by the extras of the wheel cuda-toolkit."""
    beside: tuple[str, ...]
    """The libraries beside the toolkit that they include."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class TorchMinor:
    """A minor version of torch on the default index."""

    torch: Version
    """The minor version."""
    cuda: Version
    """The CUDA release of its newest wheel for Linux."""
    platforms: tuple[str, ...]
    """The platforms whose wheel has CUDA."""
    glibc: Version
    """The oldest glibc that they run on."""
    headers: TorchHeaders
    """Its headers, and the Pythons that have a wheel."""

    @property
    def python(self) -> str:
        """The Pythons that have a wheel."""
        return self.headers.python


@dataclass(frozen=True, slots=True)
class TorchHeadersTable:
    """Every row of the table, with the wheels."""

    minors: tuple[TorchMinor, ...]
    """The minor versions, oldest first."""

    def of(self, torch: Version) -> TorchMinor | None:
        """Return the row of a version of torch; None for a minor that the table does not have."""
        return next((row for row in self.minors if row.torch.major_minor == torch.major_minor), None)

    def parts_for(self, cuda: Version) -> tuple[str, ...]:
        """Return the parts that the headers of some torch with a CUDA release include; the newest's for others."""
        rows = [row for row in self.minors if row.cuda.major_minor == cuda.major_minor] or self.minors[-1:]
        return tuple(sorted({part for row in rows for part in row.headers.parts}))


def read(data: Data, wheels: TorchWheelTable) -> TorchHeadersTable:
    """Build the table from its rows and from the torch wheels; raises FactsError if a row is invalid."""
    minors = []
    for row in data.read("headers", TorchHeaders, by=lambda row: row.torch):
        found = {platform: wheels.wheel(row.torch, platform) for platform in _PLATFORMS}
        having = {platform: wheel for platform, wheel in found.items() if wheel and wheel.cuda}
        for wheel in [*having.values()][:1]:
            glibc = max(wheel.glibc or _OLDEST_GLIBC, _OLDEST_GLIBC)
            minors.append(TorchMinor(row.torch, wheel.cuda or row.torch, tuple(having), glibc, row))
    return TorchHeadersTable(tuple(minors))
