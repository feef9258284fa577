"""What the rows of all tables share: how certain a row is, and the getters of its values."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Table
from tenv.core.versions import Version

__all__ = ["Basis", "expand", "number", "numbers", "optional_version", "required_version", "versions"]

_ABBREVIATION = re.compile(r"\b[A-Z]{2,}\d*\b")

_version = lru_cache(maxsize=1024)(Version)  # hundreds of GPUs share a few dozen


@dataclass(frozen=True, slots=True)
class Basis:
    """How certain a row is.

    Attributes:
        source: Where its values were read.
        confirmed: Whether they were read in a source for just this row, and not inferred from its neighbours.
        note: A remark about them, or an empty string.
    """

    source: str
    confirmed: bool
    note: str

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
        """What a finding has to add about this row: an empty string when it is confirmed."""
        if self.confirmed:
            return ""
        return f"not confirmed: {self.note}" if self.note else "not confirmed"

    def doubted(self, reason: str) -> "Basis":
        """Return this basis for a case that the row does not cover itself."""
        return replace(self, confirmed=False, note=reason)


def expand(row: Table, sources: Mapping[str, str]) -> str:
    """Return a row's source with its abbreviations written out; raises an error when there is none."""
    return _ABBREVIATION.sub(lambda match: sources.get(match.group(), match.group()), row.required_text("source"))


def required_version(row: Table, key: str) -> Version:
    """Return a version that must be there."""
    version = row.parsed(key, _version, None)
    if version is None:
        raise row.fail(key, "is required")
    return version


def optional_version(row: Table, key: str) -> Version | None:
    """Return a version, None if the column is absent or empty."""
    return row.parsed(key, _version, None)


def versions(row: Table, key: str) -> tuple[Version, ...]:
    """Return a list of versions."""
    try:
        return tuple(_version(text) for text in row.strings(key))
    except ValueError as error:
        raise row.fail(key, str(error)) from error


def number(row: Table, key: str) -> int:
    """Return a whole number that must be there."""
    value = row.data.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise row.fail(key, "is required" if value is None else "expected a number")
    return value


def numbers(row: Table, key: str) -> tuple[int, ...]:
    """Return a list of whole numbers, empty when it is not there."""
    value = row.data.get(key, [])
    if not isinstance(value, list) or not all(type(item) is int for item in value):
        raise row.fail(key, "expected a list of numbers")
    return tuple(value)
