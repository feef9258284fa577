"""What compiling against each minor version of torch takes: its CUDA, and the parts that its headers include."""

from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.table_files import Data
from tenv.facts.torch_wheels import TorchWheelTable

__all__ = ["TorchHeaders", "TorchHeadersTable", "TorchMinor", "read"]

_PLATFORMS = ("linux-64", "linux-aarch64", "win-64")
_OLDEST_GLIBC = Version("2.17")  # that of the oldest wheels of CUDA 12


@dataclass(frozen=True, slots=True)
class TorchHeaders:
    """The headers of a minor version of torch.

    Attributes:
        torch: The minor version.
        python: The Pythons that have a wheel.
        parts: The parts of CUDA that torch's headers include, by the extras of the wheel cuda-toolkit.
        beside: The libraries beside the toolkit that they include.
        basis: How certain this is.
    """

    torch: Version
    python: str
    parts: tuple[str, ...]
    beside: tuple[str, ...]
    basis: Basis


@dataclass(frozen=True, slots=True)
class TorchMinor:
    """A minor version of torch on the default index.

    Attributes:
        torch: The minor version.
        cuda: The CUDA release of its newest wheel for Linux.
        platforms: The platforms whose wheel has CUDA.
        glibc: The oldest glibc that they run on.
        headers: Its headers, and the Pythons that have a wheel.
    """

    torch: Version
    cuda: Version
    platforms: tuple[str, ...]
    glibc: Version
    headers: TorchHeaders

    @property
    def python(self) -> str:
        """The Pythons that have a wheel."""
        return self.headers.python


@dataclass(frozen=True, slots=True)
class TorchHeadersTable:
    """Every row of the table, with the wheels.

    Attributes:
        minors: The minor versions, oldest first.
    """

    minors: tuple[TorchMinor, ...]

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
