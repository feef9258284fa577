"""Typed getters over TOML tables; an error has its path and its line.

One small getter per kind of value keeps modules of formats flat lists of fields.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from tenv.core.dataclass import dataclass
from tenv.core.errors import ManifestError, TenvError
from tenv.core.files import read_regular

T = TypeVar("T")

__all__ = ["Table", "locate", "most_similar", "nearest", "read_toml"]

_MOST = 16 * 1024 * 1024
"""Maximum bytes of a handwritten file."""

_CONFLICT = r"^<{7} .*^={7}\r?$.*^>{7} "
_HEADER = r"\s*\[\[?\s*(?P<keys>[^\]]+?)\s*\]\]?\s*(#.*)?"
_KEY = r"""\s*(?P<keys>(?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*="""


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return a sentence with the choices most similar to `word`, or an empty string."""
    best = most_similar(word, choices)
    return f"did you mean {' or '.join(f'`{name}`' for name in best)}?" if best else ""


def most_similar(word: str, choices: Iterable[str]) -> list[str]:
    """Return the choices most similar to `word`, best first; those that are hardly similar are none."""
    from difflib import SequenceMatcher, get_close_matches  # late: only for errors

    def likeness(other: str) -> float:
        return SequenceMatcher(None, word, other).ratio()

    found = get_close_matches(word, list(choices), n=3, cutoff=0.6)
    return [name for name in found if likeness(name) > likeness(found[0]) - 0.05]


def _parts(keys: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", keys))


def locate(text: str, path: tuple[str, ...]) -> int | None:
    """Return the line (from 1) of the key at `path` in a TOML text.

    If the key itself is not found (it is missing or inside an inline table), the line of the nearest table or key
    above it is returned; None if there is none.
    """
    standing, above = _places(text)
    if (line := above.get(path)) is not None:
        return line
    shorter = (path[:length] for length in range(len(path) - 1, -1, -1))
    return next((standing[keys] for keys in shorter if keys in standing), None)


@lru_cache(maxsize=64)
def _places(text: str) -> tuple[dict[tuple[str, ...], int], dict[tuple[str, ...], int]]:
    """Return the first line of each table and key of a TOML text, including implied parents.

    `[a.b]` is the line of `a`, too. The result is cached, since every package of a manifest uses it.
    """
    standing: dict[tuple[str, ...], int] = {}
    above: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.fullmatch(_HEADER, line):
            full = table = _parts(header["keys"])
        elif key := re.match(_KEY, line):
            full = table + _parts(key["keys"])
        else:
            continue
        standing.setdefault(full, number)
        for length in range(len(full) + 1):
            above.setdefault(full[:length], number)
    return standing, above


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping read from TOML, with its source.

    Attributes:
        data: The keys and values.
        source: The text that it was read from, for line numbers.
        file: The file's name, for messages.
        path: The keys from the top of the file to here.
        error: The class of error that a getter raises.
    """

    data: Mapping[str, Any]
    source: str = ""
    file: str = ""
    path: tuple[str, ...] = ()
    error: type[TenvError] = ManifestError

    def fail(self, key: str, message: str, *, hint: str = "") -> TenvError:
        """Return (not raise) an error about the value at `key`; an empty key means the table itself."""
        path = (*self.path, *([key] if key else []))
        return self.error(f"{self.where(key)}: {'.'.join(path) or 'the file'}: {message}", hint=hint)

    def where(self, key: str) -> str:
        """Return the file and the line of a value; an empty key means the table itself."""
        line = locate(self.source, (*self.path, *([key] if key else [])))
        return f"{self.file}:{line}" if line else self.file

    def _get(self, key: str, kind: type | tuple[type, ...], name: str) -> Any:
        value = self.data.get(key)
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            raise self.fail(key, f"expected {name}, got {_name(value)}")
        return value

    def text(self, key: str, default: str = "") -> str:
        """Return a string."""
        value = self.data.get(key)
        if type(value) is str:  # nearly always
            return value
        value = self._get(key, str, "a string")
        return default if value is None else value

    def required_text(self, key: str) -> str:
        """Return a required string that is not empty."""
        value = self.text(key)
        if not value:
            raise self.fail(key, "is required")
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """Return a boolean."""
        value = self._get(key, bool, "true or false")
        return default if value is None else value

    def strings(self, key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        value = self._get(key, list, "a list of strings")
        for item in value or []:
            if not isinstance(item, str):
                raise self.fail(key, f"expected a list of strings, got {_name(item)} in it")
        return tuple(value or [])

    def table(self, key: str) -> "Table":
        """Return a sub-table; empty if it is missing."""
        value = self._get(key, dict, "a table")
        return Table(value or {}, self.source, self.file, (*self.path, key), self.error)

    def tables(self) -> Iterator[tuple[str, "Table"]]:
        """Yield every key with its sub-table."""
        for key in self.data:
            yield key, self.table(key)

    def rows(self, key: str) -> Iterator["Table"]:
        """Yield the tables of an array of tables."""
        for number, item in enumerate(self._get(key, list, "an array of tables") or []):
            if not isinstance(item, dict):
                raise self.fail(key, f"expected an array of tables, got {_name(item)} in it")
            yield Table(item, self.source, self.file, (*self.path, f"{key}[{number}]"), self.error)

    def parsed(self, key: str, parse: Callable[[str], T], default: T) -> T:
        """Return a string through `parse`, whose ValueError becomes an error with a path."""
        text = self.text(key)
        if not text:
            return default
        try:
            return parse(text)
        except ValueError as error:
            raise self.fail(key, str(error)) from error

    def only(self, known: Iterable[str]) -> None:
        """Raise an error about the first unknown key, with the most similar known one."""
        choices = list(known)
        for key in self.data:
            if key not in choices:
                suggestion = nearest(key, choices)
                raise self.fail(key, "unknown key", hint=suggestion or f"known keys: {', '.join(sorted(choices))}")


def _name(value: object) -> str:
    names = {
        bool: "true or false",
        str: "a string",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "a table",
    }
    return names.get(type(value), type(value).__name__)


@lru_cache(maxsize=64)  # a parent is read again for each of its children
def _parse(text: str) -> dict[str, Any]:
    import tomli  # late: few commands that use an environment read a file of TOML

    return tomli.loads(text)


def read_toml(path: Path, error: type[TenvError] = ManifestError, name: str = "") -> Table:
    """Read a TOML file; every fault of the file is raised as `error`."""
    name = name or str(path)
    try:
        text = read_regular(path, _MOST).decode("utf-8-sig")  # some editors write a byte order mark
        return Table(_parse(text), text, name, (), error)
    except UnicodeDecodeError as fault:
        raise error(f"{name}: not UTF-8 text (byte {fault.start})") from fault
    except RecursionError as fault:
        raise error(f"{name}: not TOML: nested too deep") from fault
    except ValueError as fault:
        if type(fault) is ValueError:  # of `int`
            raise error(f"{name}: has a number with thousands of digits") from fault
        if re.search(_CONFLICT, text, re.MULTILINE | re.DOTALL):
            hint = "merge both sides by hand and remove the lines with conflict markers"
            raise error(f"{name}: has conflict markers of an unresolved merge", hint=hint) from fault
        raise error(f"{name}: not TOML: {fault}") from fault
    except OSError as fault:
        raise error(f"{name}: can't be read: {fault.strerror}") from fault
