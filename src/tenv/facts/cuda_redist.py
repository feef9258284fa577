"""The CUDA releases in NVIDIA's redist, and the components that a build of PyTorch uses."""

from collections.abc import Mapping

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Table
from tenv.core.versions import Version
from tenv.facts.interface import Basis, optional_version, required_version
from tenv.facts.table_files import Data

__all__ = ["CudaComponent", "CudaRedistTable", "CudaRelease", "read"]


@dataclass(frozen=True, slots=True)
class CudaRelease:
    """A release of CUDA in NVIDIA's redist.

    Attributes:
        label: The release, three numbers (12.4.1).
        date: The day of the release, ``2024-04-02``; empty when the manifest does not say.
        nvcc: The version of its compiler.
        platforms: NVIDIA's names of the platforms that it has nvcc for.
        basis: How certain this is.
    """

    label: Version
    date: str
    nvcc: Version
    platforms: tuple[str, ...]
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "CudaRelease":
        """Read one row of the data file; raises FactsError with the row's path."""
        return cls(
            required_version(row, "label"),
            row.text("date"),
            required_version(row, "nvcc"),
            row.strings("platforms"),
            Basis.read(row, sources),
        )


@dataclass(frozen=True, slots=True)
class CudaComponent:
    """A component of CUDA that a build of PyTorch uses.

    Attributes:
        name: Its name in the redist manifest.
        since: The first release that it is needed of; None for the oldest.
        before: The first release that it is no longer needed of; None for none.
        platforms: NVIDIA's names of the platforms; empty for all.
        use: What a build uses it for.
        basis: How certain this is.
    """

    name: str
    since: Version | None
    before: Version | None
    platforms: tuple[str, ...]
    use: str
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "CudaComponent":
        """Read one row of the data file; raises FactsError with the row's path."""
        return cls(
            row.required_text("name"),
            optional_version(row, "since"),
            optional_version(row, "before"),
            row.strings("platforms"),
            row.required_text("use"),
            Basis.read(row, sources),
        )

    def belongs_to(self, release: Version, platform: str) -> bool:
        """Return whether a release has this component for one of NVIDIA's platforms."""
        inside = (self.since is None or release >= self.since) and (self.before is None or release < self.before)
        return inside and (not self.platforms or platform in self.platforms)


@dataclass(frozen=True, slots=True)
class CudaRedistTable:
    """Every row of the table.

    Attributes:
        releases: The known releases, oldest first.
        components: What a build of PyTorch uses, by name.
    """

    releases: tuple[CudaRelease, ...]
    components: tuple[CudaComponent, ...]

    def components_of(self, release: Version, platform: str) -> tuple[CudaComponent, ...]:
        """Return the components of a release that a build of PyTorch uses on one of NVIDIA's platforms."""
        return tuple(row for row in self.components if row.belongs_to(release, platform))


def read(data: Data) -> CudaRedistTable:
    """Build the table from its rows; raises FactsError if one is invalid."""
    releases = sorted((CudaRelease.read(*row) for row in data.rows("release")), key=lambda row: row.label)
    components = sorted((CudaComponent.read(*row) for row in data.rows("component")), key=lambda row: row.name)
    return CudaRedistTable(tuple(releases), tuple(components))
