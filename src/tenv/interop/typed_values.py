"""Values of a file of another tool, each of the type that its format gives it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tenv.core.errors import ManifestError, TenvError
from tenv.core.names import normalize

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


def included_group(row: Any) -> list[str] | None:
    """Return the group that a row of a dependency group includes; None for a row that is a line."""
    return [normalize(str(row.get("include-group", "")))] if isinstance(row, Mapping) else None


def own_extras(project: str, line: Any) -> list[str] | None:
    """Return the extras of a project that a line of its own names, as ``it[test]``; None for another line."""
    name = "[-_.]+".join(map(re.escape, project.split("-"))) if project else "(?!)"
    found = re.match(rf"{name}\s*(?:\[([^\]]*)\])?\s*(;.*)?$", str(line), re.IGNORECASE)
    return [normalize(one.strip()) for one in (found[1] or "").split(",") if one.strip()] if found else None


def with_own_extras(project: str, line: str, extras: Mapping[str, list[str]]) -> list[str]:
    """Return a line, or those of the project's own extras that it names."""
    own = own_extras(project, line)
    return [line] if own is None else [one for name in own for one in extras.get(name, [])]


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
