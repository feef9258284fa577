"""Where environments of the built-in targets were created; elsewhere their files are only resolved."""

from collections.abc import Mapping

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Table
from tenv.facts.interface import Basis
from tenv.facts.table_files import Data

__all__ = ["CreatedEnvironment", "CreatedTargetTable", "read"]


@dataclass(frozen=True, slots=True)
class CreatedEnvironment:
    """An environment that was created from the lock of a built-in target.

    Attributes:
        target: The name of the target.
        platform: The platform.
        place: The system that it was made on.
        basis: How certain this is.
    """

    target: str
    platform: str
    place: str
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "CreatedEnvironment":
        """Read one row of the data file; raises FactsError with the row's path."""
        return cls(
            row.required_text("target"),
            row.required_text("platform"),
            row.required_text("place"),
            Basis.read(row, sources),
        )


@dataclass(frozen=True, slots=True)
class CreatedTargetTable:
    """Every row of the table.

    Attributes:
        environments: The environments.
    """

    environments: tuple[CreatedEnvironment, ...]

    def places(self, target: str) -> dict[str, str]:
        """Return where environments of a target were created: the system, by platform."""
        return {row.platform: row.place for row in self.environments if row.target == target}


def read(data: Data) -> CreatedTargetTable:
    """Build the table from its rows; raises FactsError if one is invalid."""
    return CreatedTargetTable(tuple(CreatedEnvironment.read(*row) for row in data.rows("environment")))
