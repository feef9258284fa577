"""The wheels of torch on the Python package index: their CUDA, and the parts of it that their headers include."""

from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.table_files import Data

__all__ = ["TorchWheel", "TorchWheelTable", "read"]


@dataclass(frozen=True, slots=True)
class TorchWheel:
    """The wheels of a minor version of torch.

    Attributes:
        torch: The minor version.
        cuda: The CUDA release of the wheels for Linux.
        platforms: The platforms whose wheel has CUDA.
        python: The Pythons that have a wheel.
        glibc: The oldest glibc that they run on.
        parts: The parts of CUDA that torch's headers include, by the extras of the wheel cuda-toolkit.
        beside: The libraries beside the toolkit that they include.
        basis: How certain this is.
    """

    torch: Version
    cuda: Version
    platforms: tuple[str, ...]
    python: str
    glibc: Version
    parts: tuple[str, ...]
    beside: tuple[str, ...]
    basis: Basis


@dataclass(frozen=True, slots=True)
class TorchWheelTable:
    """Every row of the table.

    Attributes:
        wheels: The minor versions, oldest first.
    """

    wheels: tuple[TorchWheel, ...]

    def of(self, torch: Version) -> TorchWheel | None:
        """Return the row of a version of torch; None for a minor that the table does not have."""
        return next((row for row in self.wheels if row.torch.major_minor == torch.major_minor), None)

    def newest(self, cuda: Version) -> TorchWheel | None:
        """Return the newest minor version with a CUDA release; None if the index has none."""
        found = (row for row in reversed(self.wheels) if row.cuda.major_minor == cuda.major_minor)
        return next(found, None)

    def parts_for(self, cuda: Version) -> tuple[str, ...]:
        """Return the parts that the headers of some torch with a CUDA release include; the newest's for others."""
        rows = [row for row in self.wheels if row.cuda.major_minor == cuda.major_minor] or self.wheels[-1:]
        return tuple(sorted({part for row in rows for part in row.parts}))


def read(data: Data) -> TorchWheelTable:
    """Build the table from its rows; raises FactsError if one is invalid."""
    return TorchWheelTable(data.read("wheel", TorchWheel, by=lambda row: row.torch))
