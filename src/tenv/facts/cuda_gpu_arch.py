"""The GPU architectures that a CUDA toolkit compiles for, and the compute capabilities of GPUs."""

from collections.abc import Mapping
from enum import StrEnum

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Table
from tenv.core.versions import Version
from tenv.facts.interface import Basis, number, numbers, required_version, versions
from tenv.facts.table_files import Data

__all__ = ["Family", "GpuArchTable", "GpuClass", "GpuModel", "ToolkitArchs", "class_of", "read", "sm_of"]


class GpuClass(StrEnum):
    """The product class of a GPU; only some classes support forward compatibility."""

    GEFORCE = "geforce"
    DATA_CENTRE = "data-centre"
    PROFESSIONAL = "professional"
    JETSON = "jetson"
    OTHER = "other"


def class_of(kind: str, name: str) -> GpuClass:
    """Return the product class of a GPU. A Titan counts as a GeForce, as in NVIDIA's list of brands.

    Args:
        kind: The series that a table gives it.
        name: Its marketing name.
    """
    if kind.startswith("GeForce") or "TITAN" in name:
        return GpuClass.GEFORCE
    classes = {"data centre": GpuClass.DATA_CENTRE, "pro": GpuClass.PROFESSIONAL, "Jetson": GpuClass.JETSON}
    return classes.get(kind, GpuClass.OTHER)


def sm_of(capability: Version) -> int:
    """Return a compute capability as nvcc names it: ``7.5`` is 75, ``12.0`` is 120."""
    return capability.major * 10 + capability.minor


@dataclass(frozen=True, slots=True)
class ToolkitArchs:
    """The architectures of one minor version of the CUDA toolkit.

    Attributes:
        major_minor: The version of the toolkit.
        sm: The real architectures that it compiles for, rising, in the notation of `sm_of`.
        min: The lowest of them.
        max: The highest of them.
        variants: The architecture-specific (``90a``) and family-specific (``100f``) ones.
        basis: How certain this is.
    """

    major_minor: str
    sm: tuple[int, ...]
    min: int
    max: int
    variants: tuple[str, ...]
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "ToolkitArchs":
        """Read one row of the data file; raises FactsError with the row's path."""
        return cls(
            major_minor=required_version(row, "major_minor").major_minor,
            sm=numbers(row, "sm"),
            min=number(row, "min"),
            max=number(row, "max"),
            variants=row.strings("variants"),
            basis=Basis.read(row, sources),
        )

    def supports(self, capability: Version) -> bool:
        """Return whether the toolkit compiles for exactly this compute capability."""
        return sm_of(capability) in self.sm

    def has_dropped(self, capability: Version) -> bool:
        """Return whether a GPU is older than all architectures of the toolkit."""
        return sm_of(capability) < self.min

    def is_older_than(self, capability: Version) -> bool:
        """Return whether a GPU is newer than all architectures of the toolkit."""
        return sm_of(capability) > self.max


@dataclass(frozen=True, slots=True)
class Family:
    """A generation of GPUs.

    Attributes:
        name: Its name.
        capabilities: The compute capabilities that belong to it.
        basis: How certain this is.
    """

    name: str
    capabilities: tuple[Version, ...]
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "Family":
        """Read one row of the data file; raises FactsError with the row's path."""
        return cls(row.required_text("name"), versions(row, "cc"), Basis.read(row, sources))


@dataclass(frozen=True, slots=True)
class GpuModel:
    """A GPU.

    Attributes:
        name: Its marketing name.
        capability: Its compute capability.
        kind: The series that it is sold in.
        basis: How certain this is.
    """

    name: str
    capability: Version
    kind: str
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "GpuModel":
        """Read one row of the data file; raises FactsError with the row's path."""
        return cls(
            row.required_text("name"), required_version(row, "cc"), row.required_text("kind"), Basis.read(row, sources)
        )

    @property
    def gpu_class(self) -> GpuClass:
        """Its product class."""
        return class_of(self.kind, self.name)


@dataclass(frozen=True, slots=True)
class GpuArchTable:
    """Every row of the table.

    Attributes:
        toolkits: One row per minor version of the toolkit, oldest first.
        families: One row per generation of GPUs, oldest first.
        gpus: One row per GPU.
    """

    toolkits: tuple[ToolkitArchs, ...]
    families: tuple[Family, ...]
    gpus: tuple[GpuModel, ...]

    def archs(self, cuda: Version) -> ToolkitArchs | None:
        """Return the architectures of a toolkit, None if the table has no row for its minor version."""
        wanted = cuda.major_minor
        return next((row for row in self.toolkits if row.major_minor == wanted), None)

    def range(self, capability: Version) -> tuple[ToolkitArchs, ToolkitArchs] | None:
        """Return the oldest and the newest toolkit of the table that compile for a compute capability."""
        rows = [row for row in self.toolkits if row.supports(capability)]
        return (rows[0], rows[-1]) if rows else None

    def family(self, capability: Version) -> Family | None:
        """Return the generation of GPUs that a compute capability belongs to."""
        return next((row for row in self.families if capability in row.capabilities), None)


def read(data: Data) -> GpuArchTable:
    """Build the table from its rows; raises FactsError if one is invalid."""
    toolkits = (ToolkitArchs.read(*row) for row in data.rows("toolkit"))
    gpus = (GpuModel.read(*row) for row in data.rows("gpu"))
    return GpuArchTable(
        toolkits=tuple(sorted(toolkits, key=lambda row: Version(row.major_minor))),
        families=tuple(Family.read(*row) for row in data.rows("family")),
        gpus=tuple(gpus),
    )
