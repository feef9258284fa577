"""Read tables of TOML, JSON and YAML by the types of their values; an error has its path, and in TOML its line.

`Table` has a getter for each type. `Table.read` reads a whole dataclass by the annotations of its fields.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tenv.core.dataclass import dataclass
from tenv.core.errors import ManifestError, TenvError
from tenv.core.files import read_regular
from tenv.core.versions import Version
from tenv.core.worded import Worded

T = TypeVar("T")
Getter = Callable[["Table", str], Any]

_MOST = 16 * 1024 * 1024
"""Maximum bytes of a handwritten file."""
_HIGHEST = 2**63 - 1
"""The highest whole number that `Table.number` reads."""
_REQUIRED: Any = object()
"""The default of a value without one."""

_CONFLICT = r"^<{7} .*^={7}\r?$.*^>{7} "
_HEADER = r"\s*\[\[?\s*(?P<keys>[^\]]+?)\s*\]\]?\s*(#.*)?"
_ROW = re.compile(r"\[\d+\]$")
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
    above it is returned; None if there is none. ``name[1]`` is the second row of an array of tables.
    """
    standing, above = _places(text)
    if (line := above.get(path)) is not None:
        return line
    shorter = [path[:length] for length in range(len(path) - 1, -1, -1)]
    bare = [(*keys[:-1], _ROW.sub("", keys[-1])) for keys in (path, *shorter) if keys]  # an inline array
    found = sorted((keys for keys in (*bare, *shorter) if keys in standing), key=len)
    return standing[found[-1]] if found else None


def _in_rows(keys: tuple[str, ...], rows: dict[tuple[str, ...], int], *, new: bool) -> tuple[str, ...]:
    """Return the keys of a header with the row of each array of tables, which is the newest one.

    Args:
        keys: The keys.
        rows: The number of the newest row of each array; it is changed.
        new: Whether the header begins a row of the last key.
    """
    full: tuple[str, ...] = ()
    for place, key in enumerate(keys, 1):
        array = (*full, key)
        if new and place == len(keys):
            rows[array] = rows.get(array, -1) + 1
        full = (*full, f"{key}[{rows[array]}]") if array in rows else array
    return full


@lru_cache(maxsize=64)
def _places(text: str) -> tuple[dict[tuple[str, ...], int], dict[tuple[str, ...], int]]:
    """Return the first line of each table and key of a TOML text, including implied parents.

    `[a.b]` is the line of `a`, too. The result is cached, since every package of a manifest uses it.
    """
    standing: dict[tuple[str, ...], int] = {}
    above: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    rows: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.fullmatch(_HEADER, line):
            full = table = _in_rows(_parts(header["keys"]), rows, new=line.lstrip().startswith("[["))
        elif key := re.match(_KEY, line):
            full = table + _parts(key["keys"])
        else:
            continue
        for names in (full, tuple(_ROW.sub("", key) for key in full)):  # without rows: the first of them
            standing.setdefault(names, number)
            for length in range(len(names) + 1):
                above.setdefault(names[:length], number)
    return standing, above


@dataclass(frozen=True, slots=True)
class Column:
    """How `Table.read` reads a field: an annotation beside its type, as in ``Annotated[Version, Column("cc")]``."""

    name: str = ""
    """The key; empty for the name of the field."""
    read: Getter | None = None
    """Reads the value from the table by the key, missing or not; None for the getter of the type."""
    default: Any = _REQUIRED
    """The value for a missing key; a required field has no default here and none in its dataclass."""


OptionalText = Annotated[str, Column(default="")]
"""A string that is empty if its key is missing."""


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping read from a file, with its source."""

    data: Mapping[str, Any]
    """The keys and values."""
    source: str = ""
    """The text of a TOML file, for line numbers; empty for other formats."""
    file: str = ""
    """The file's name, for messages."""
    path: tuple[str, ...] = ()
    """The keys from the top of the file to here."""
    error: type[TenvError] = ManifestError
    """The class of error that a getter raises."""

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

    def number(self, key: str) -> int | None:
        """Return a whole number from 0 to the 64-bit limit; None if it is missing."""
        value: int | None = self._get(key, int, "a whole number")
        if value is not None and not 0 <= value <= _HIGHEST:
            raise self.fail(key, f"expected no {'less than 0' if value < 0 else f'more than {_HIGHEST}'}")
        return value

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

    def read(self, cls: type[T], **given: Any) -> T:
        """Return a dataclass with the values of this table, each by the type of its field.

        A field is required unless it has a default, or is optional, a list, a flag or a kind. A required text is not
        empty.

        Args:
            cls: The dataclass.
            given: Its values that are not in the table, by field.
        """
        for name, key, get in _columns(cast("Any", cls)):
            if name not in given:
                given[name] = get(self, key)
        return cls(**given)

    def only(self, known: Iterable[str]) -> None:
        """Raise an error about the first unknown key, with the most similar known one."""
        choices = list(known)
        for key in self.data:
            if key not in choices:
                suggestion = nearest(key, choices)
                raise self.fail(key, "unknown key", hint=suggestion or f"known keys: {', '.join(sorted(choices))}")


@lru_cache(maxsize=256)
def _columns(cls: Any) -> tuple[tuple[str, str, Getter], ...]:
    """Return the fields of a dataclass, each with its key and its getter."""
    types = get_type_hints(cls, include_extras=True)
    rows = []
    for field in fields(cls):
        if field.init:
            default = _REQUIRED if field.default is MISSING else field.default
            default = default if field.default_factory is MISSING else field.default_factory()
            rows.append((field.name, *_column(types[field.name], default, field.name)))
    return tuple(rows)


def _column(annotation: Any, default: Any, name: str) -> tuple[str, Getter]:
    extra = next((one for one in get_args(annotation)[1:] if isinstance(one, Column)), Column())
    kind = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    name = extra.name or name
    if extra.read:
        return name, extra.read
    default = default if extra.default is _REQUIRED else extra.default
    return name, getter_of(kind, default)


def getter_of(kind: Any, default: Any = _REQUIRED) -> Getter:
    """Return the getter of a type, which takes a table and a key.

    Args:
        kind: The type: text, whole number, flag, `Version`, date, enumeration, pattern, dataclass, a tuple of these,
            or one of them or None.
        default: The value for a missing key; without one, it is an error unless the type has one.
    """
    if get_origin(kind) in (Union, UnionType):
        default = None if default is _REQUIRED else default
        (kind,) = (one for one in get_args(kind) if one is not NoneType)
    if default is _REQUIRED and (kind is bool or get_origin(kind) is tuple):
        default = kind()
    if default is _REQUIRED and isinstance(kind, type) and issubclass(kind, Worded):
        default = kind.read(None)
    read = _reader(kind)

    def get(table: Table, key: str) -> Any:
        value = read(table, key) if table.data.get(key) is not None else None
        if value not in (None, ""):
            return value
        if default is _REQUIRED:
            raise table.fail(key, "is required")
        return default

    return get


def _reader(kind: Any) -> Getter:
    """Return the reader of a present value."""
    if get_origin(kind) is tuple:
        return _list_reader(get_args(kind)[0])
    if parse := _parser(kind):
        return lambda table, key: table.parsed(key, parse, None)
    if is_dataclass(kind):
        return lambda table, key: table.table(key).read(cast("type", kind))
    plain: dict[Any, Getter] = {str: Table.text, int: Table.number, bool: Table.flag}
    return plain[kind]


def _list_reader(item: Any) -> Getter:
    if item is str:
        return Table.strings
    if item is int:
        return _numbers
    parse = _parser(item)
    if parse is None:
        return lambda table, key: tuple(row.read(item) for row in table.rows(key))

    def read(table: Table, key: str) -> Any:
        try:
            return tuple(map(parse, table.strings(key)))
        except ValueError as error:
            raise table.fail(key, str(error)) from error

    return read


def _numbers(table: Table, key: str) -> tuple[int, ...]:
    items = table.data[key]
    if not isinstance(items, list) or any(type(item) is not int for item in items):
        raise table.fail(key, "expected a list of numbers")
    return tuple(items)


def _parser(kind: Any) -> Callable[[str], Any] | None:
    """Return the parser of a text, which raises ValueError for another text; None for other types."""
    if kind is Version:
        return _version
    if kind is date:
        return date.fromisoformat
    if (get_origin(kind) or kind) is re.Pattern:
        return _pattern
    if isinstance(kind, type) and issubclass(kind, Worded):
        return kind.read
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return lambda text: _member(kind, text)
    return None


_version = lru_cache(maxsize=1024)(Version)  # hundreds of GPUs share a few dozen


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"no regular expression: {error}") from error


def _member(kind: type[StrEnum], text: str) -> StrEnum:
    if text not in list(kind):
        raise ValueError(f"expected {' or '.join(kind)}, got `{text}`")
    return kind(text)


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
