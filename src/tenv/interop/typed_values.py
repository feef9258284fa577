"""Values of a file of another tool, each of the type that its format gives it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tenv.core.errors import ManifestError, TenvError

_FEW = 8
"""The number of names that a message lists."""


def few(names: Iterable[str]) -> str:
    """Return names for a message: the first ones, and the number of the others."""
    listed = list(names)
    more = len(listed) - _FEW
    return ", ".join(listed[:_FEW]) + (f" and {more} others" if more > 1 else f", {listed[-1]}" if more == 1 else "")


@contextmanager
def valid(path: Path, what: str) -> Iterator[None]:
    """Turn each error of a value of another type than its reader expects into one error with the file's name.

    Args:
        path: The file.
        what: Its format, such as ``pyproject.toml``.

    Raises:
        ManifestError: There was one.
    """
    try:
        yield
    except TenvError:
        raise
    except (ValueError, TypeError, AttributeError, KeyError, NotImplementedError, RecursionError) as error:
        reason = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
        raise ManifestError(f"{path}: invalid {what}: {reason}") from error


def strings_of(table: Mapping[str, Any], key: str) -> list[str]:
    """Return the strings at a key of a table; none if it is missing.

    Raises:
        TypeError: The value is not a list of strings.
    """
    found = table.get(key) or []
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise TypeError(f"{key}: expected a list of strings, not {found!r:.100}")
    return found


def table_of(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the table at a key of a table; an empty one if it is missing.

    Raises:
        TypeError: The value is not a table.
    """
    found = table.get(key) or {}
    if not isinstance(found, Mapping):
        raise TypeError(f"{key}: expected a table, not {found!r:.100}")
    return found


def rows_of(groups: Mapping[str, Any], name: str) -> list[Any]:
    """Return the rows of a dependency group: lines, and tables that include other groups."""
    rows = groups[name]
    if not isinstance(rows, list) or not all(isinstance(row, str | Mapping) for row in rows):
        raise TypeError(f"dependency-groups.{name}: expected a list of strings and tables, not {rows!r:.100}")
    return rows


def flat(tables: Mapping[str, list[Any]], named: Callable[[Any], list[str] | None]) -> dict[str, list[str]]:
    """Return the lines of each table, with the lines of the tables that it includes, each table once.

    Args:
        tables: The rows by name.
        named: Returns the tables that a row includes; None for a row that is a line.
    """
    found: dict[str, list[str]] = {}
    for name, own in tables.items():
        lines, seen, left = found.setdefault(name, []), {name}, own[::-1]
        while left:
            row = left.pop()
            if (others := named(row)) is None:
                lines.append(row)
                continue
            new = [other for other in dict.fromkeys(others) if other in tables and other not in seen]
            seen.update(new)
            left += [line for other in reversed(new) for line in reversed(tables[other])]
    return found
