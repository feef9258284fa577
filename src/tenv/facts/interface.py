"""The columns of all tables: how certain a row is."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column, Table
from tenv.core.versions import Version

_ABBREVIATION = re.compile(r"\b[A-Z]{2,}\d*\b")


def _minor(row: Table, key: str) -> str:
    row.required_text(key)
    return row.parsed(key, lambda text: Version(text).major_minor, "")


MinorVersion = Annotated[str, Column(read=_minor)]
"""The first two numbers of a version, as text."""


@dataclass(frozen=True, slots=True)
class Basis:
    """How certain a row is."""

    source: str
    """Where its values were read."""
    confirmed: bool
    """Whether they were read in a source for just this row, and not inferred from its neighbours."""
    note: str
    """A remark about them, or an empty string."""

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "Basis":
        """Read the three columns that every row has; raises FactsError when the source is not given.

        Args:
            row: The row.
            sources: The abbreviations in its source.
        """
        return cls(expand(row, sources), row.flag("confirmed"), row.text("note"))

    @property
    def doubt(self) -> str:
        """The doubt that a finding reports about this row; an empty string if it is confirmed."""
        if self.confirmed:
            return ""
        return f"not confirmed: {self.note}" if self.note else "not confirmed"

    def doubted(self, reason: str) -> "Basis":
        """Return this basis for a case that the row does not cover itself."""
        return replace(self, confirmed=False, note=reason)


def expand(row: Table, sources: Mapping[str, str]) -> str:
    """Return a row's source with its abbreviations written out; raises an error when there is none."""
    return _ABBREVIATION.sub(lambda match: sources.get(match.group(), match.group()), row.required_text("source"))
