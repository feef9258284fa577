"""Typed getters over JSON; an error has its path: ``gpus.value[0].name``."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tenv.core.dataclass import dataclass
from tenv.core.errors import HostReportError
from tenv.core.versions import Version

__all__ = ["MOST", "Values"]

T = TypeVar("T")

_HINT = "`tenv host --json > FILE` writes a valid one; docs/host.md has the form"
MOST = 2**63 - 1
"""The highest whole number that is read."""
_NAMES = {str: "a text", int: "a whole number", bool: "true or false", list: "a list", dict: "an object"}


@dataclass(frozen=True, slots=True)
class Values:
    """A JSON object with its source.

    Attributes:
        data: The object.
        source: Where it was read, for messages.
        path: Its path from the top.
    """

    data: dict[str, Any]
    source: str
    path: str = ""

    @classmethod
    def of(cls, data: object, source: str, path: str = "") -> "Values":
        """Return the values of a required object."""
        if not isinstance(data, dict):
            raise _fault(source, path, "an object", data)
        return cls(data, source, path)

    def _at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def _get(self, key: str, kind: type[T]) -> T:
        value = self.data.get(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise _fault(self.source, self._at(key), _NAMES[kind], value)
        return value

    def text(self, key: str) -> str:
        """Return a text."""
        return self._get(key, str)

    def number(self, key: str) -> int:
        """Return a whole number from 0 to the 64-bit limit."""
        value = self._get(key, int)
        if value < 0:
            raise HostReportError(f"{self.source}: {self._at(key)}: expected no less than 0, got {value}", hint=_HINT)
        if value > MOST:
            raise HostReportError(f"{self.source}: {self._at(key)}: expected no more than {MOST}", hint=_HINT)
        return value

    def flag(self, key: str) -> bool:
        """Return true or false."""
        return self._get(key, bool)

    def version(self, key: str) -> Version:
        """Return a version."""
        try:
            # `int` accepts digits of other scripts; reports do not.
            return Version(self.text(key).encode("ascii", "backslashreplace").decode())
        except ValueError as error:
            raise HostReportError(f"{self.source}: {self._at(key)}: {error}", hint=_HINT) from error

    def optional(self, get: Callable[[str], T], key: str) -> T | None:
        """Return the result of a getter of this object; None if the value is null or missing."""
        return None if self.data.get(key) is None else get(key)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        items = self._get(key, list)
        for index, item in enumerate(items):
            if not isinstance(item, str):
                raise _fault(self.source, f"{self._at(key)}[{index}]", "a text", item)
        return tuple(items)

    def object(self, key: str) -> "Values":
        """Return an object."""
        return Values(self._get(key, dict), self.source, self._at(key))

    def objects(self, key: str) -> "Iterator[Values]":
        """Yield the objects of a list."""
        for index, item in enumerate(self._get(key, list)):
            yield Values.of(item, self.source, f"{self._at(key)}[{index}]")


def _fault(source: str, path: str, expected: str, value: object) -> HostReportError:
    got = "null" if value is None else _NAMES.get(type(value), "a number")
    return HostReportError(f"{source}: {path or 'the report'}: expected {expected}, got {got}", hint=_HINT)
