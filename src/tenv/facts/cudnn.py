"""The releases of cuDNN and their CUDA major versions."""

from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.facts.redist_rows import RedistArchive, releases
from tenv.facts.table_files import Data

__all__ = ["CudnnTable", "read"]


@dataclass(frozen=True, slots=True)
class CudnnTable:
    """Every row of the table.

    Attributes:
        archives: One row per version, platform and CUDA major version, oldest first.
    """

    archives: tuple[RedistArchive, ...]

    def versions(self, platform: str | None = None) -> tuple[Version, ...]:
        """Return the known versions, rising; those with an archive for NVIDIA's `platform` when it is given."""
        return releases(self.archives, platform)


def read(data: Data) -> CudnnTable:
    """Build the table from its rows; raises FactsError if one is invalid."""
    archives = (RedistArchive.read(*row, data.base) for row in data.rows("archive"))
    return CudnnTable(tuple(sorted(archives, key=lambda row: row.version)))
