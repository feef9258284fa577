"""The releases of cuSPARSELt, their CUDA versions, and those that PyTorch uses."""

from collections.abc import Mapping

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Table
from tenv.core.versions import Version
from tenv.facts.interface import Basis, required_version
from tenv.facts.redist_rows import RedistArchive, releases
from tenv.facts.table_files import Data

__all__ = ["CiPairing", "CusparseltTable", "WheelPairing", "read"]


@dataclass(frozen=True, slots=True)
class CiPairing:
    """The cuSPARSELt that PyTorch's own build images take for a range of CUDA versions.

    Attributes:
        first: The first minor version of CUDA.
        last: The last one.
        version: The version of cuSPARSELt.
        basis: How certain this is.
    """

    first: Version
    last: Version
    version: Version
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "CiPairing":
        """Read one row of the data file; raises FactsError with the row's path."""
        first, _, last = row.required_text("cuda").partition("-")
        try:
            span = Version(first), Version(last or first)
        except ValueError as error:
            raise row.fail("cuda", f"expected a version or a range such as 12.2-12.6: {error}") from error
        return cls(*span, required_version(row, "version"), Basis.read(row, sources))


@dataclass(frozen=True, slots=True)
class WheelPairing:
    """The cuSPARSELt that a PyTorch wheel requires.

    Attributes:
        torch: The release of PyTorch.
        package: The package that it requires, ``nvidia-cusparselt-cu13``.
        version: The version of it.
        basis: How certain this is.
    """

    torch: Version
    package: str
    version: Version
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "WheelPairing":
        """Read one row of the data file; raises FactsError with the row's path."""
        package, _, version = row.required_text("requires").partition(" ")
        try:
            return cls(required_version(row, "torch"), package, Version(version), Basis.read(row, sources))
        except ValueError as error:
            raise row.fail("requires", f"expected a package and its version: {error}") from error


@dataclass(frozen=True, slots=True)
class CusparseltTable:
    """Every row of the table.

    Attributes:
        archives: One row per version, platform and CUDA major version, oldest first.
        ci: What PyTorch's own build images take.
        wheels: What PyTorch's wheels require, oldest first.
    """

    archives: tuple[RedistArchive, ...]
    ci: tuple[CiPairing, ...]
    wheels: tuple[WheelPairing, ...]

    def versions(self, platform: str | None = None) -> tuple[Version, ...]:
        """Return the known versions, rising; those with an archive for NVIDIA's `platform` when it is given."""
        return releases(self.archives, platform)

    def for_cuda(self, cuda: Version) -> CiPairing | None:
        """Return what PyTorch's own build images take for a CUDA version, None if the table does not say."""
        minor = Version(cuda.major_minor)
        return next((row for row in self.ci if row.first <= minor <= row.last), None)


def read(data: Data) -> CusparseltTable:
    """Build the table from its rows; raises FactsError if one is invalid."""
    archives = (RedistArchive.read(*row, data.base) for row in data.rows("archive"))
    wheels = (WheelPairing.read(*row) for row in data.rows("pytorch_wheel"))
    return CusparseltTable(
        archives=tuple(sorted(archives, key=lambda row: row.version)),
        ci=tuple(CiPairing.read(*row) for row in data.rows("pytorch_ci")),
        wheels=tuple(sorted(wheels, key=lambda row: row.torch)),
    )
