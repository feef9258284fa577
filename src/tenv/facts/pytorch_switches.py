"""The fate of a switch of PyTorch's build: the revisions that read it, and the switch of the same meaning in others."""

from collections.abc import Collection
from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column, OptionalText
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.table_files import Rows


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch that some revisions read and others do not."""

    name: str
    """Its name."""
    first: Version | None
    """The first release that is known to read it; None if none is."""
    last: Version | None
    """The last one; None if none is, or if the newest does."""
    now: OptionalText
    """The newest name of the switch with the same meaning; empty for none."""
    opposite: Annotated[bool, Column(default=False)]
    """Whether 1 of the one is 0 of the other."""
    what: OptionalText
    """The part that it turns on; empty where its name says it."""
    basis: Basis
    """How certain this is."""

    def fate(self, release: Version) -> str:
        """Return why a release that does not read it does not, in words; empty if that is unknown."""
        part = f" ({self.what})" if self.what else ""
        if self.last is not None and release > self.last:
            return f"PyTorch up to {self.last} read it{part}"
        if self.first is not None and release < self.first:
            return f"PyTorch from {self.first} on reads it{part}"
        return "no release is known to read it" if self.first is None else ""


@dataclass(frozen=True, slots=True)
class SwitchTable:
    """Every row of the table."""

    rows: Annotated[tuple[Switch, ...], Rows("switch")]
    """One row per switch."""

    def find(self, name: str) -> Switch | None:
        """Return the row of a switch."""
        return next((row for row in self.rows if row.name == name), None)

    def instead(self, name: str, known: Collection[str]) -> tuple[str, bool] | None:
        """Return the switch with the meaning of another one that a revision reads; None without a row for it.

        Args:
            name: The switch that it does not read.
            known: The switches that it reads.

        Returns:
            The switch, and whether 1 of the one is 0 of the other.
        """
        row = self.find(name)
        newest, against = (row.now, row.opposite) if row and row.now else (name, False)
        names = [(newest, False), *((other.name, other.opposite) for other in self.rows if other.now == newest)]
        return next(
            ((other, turned is not against) for other, turned in names if other != name and other in known), None
        )
