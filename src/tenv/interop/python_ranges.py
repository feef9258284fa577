"""The Pythons that a file of another tool is for, as one range."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tenv.core.versions import Range, Version
from tenv.interop.requests import holds

if TYPE_CHECKING:
    from packaging.markers import Marker

DEFAULT_MINORS = ("3.11", "3.12", "3.13", "3.14")
"""The Pythons of a target whose file names none."""


def minors_of_range(text: str) -> tuple[str, ...]:
    """Return the Python minors of a range."""
    accepted = Range(text or "*")
    return tuple(minor for number in range(6, 20) if f"{(minor := f'3.{number}')}.0" in accepted)


def python_within(python: str, markers: "list[Marker]", platforms: Iterable[str]) -> str:
    """Return the newest Pythons of a range for which one of some markers may hold; the range itself without markers.

    Args:
        python: The range.
        markers: The markers of the environments that a file is for.
        platforms: The platforms.
    """
    minors, cases = minors_of_range(python), [(marker, on) for on in platforms for marker in markers]
    kept = newest_run(one for one in minors if any(holds(marker, on, one) is not False for marker, on in cases))
    return python if not kept or kept == minors else range_of(kept)


def range_of(minors: Sequence[str]) -> str:
    """Return the range of some Python minors in a row, lowest first."""
    return f">={minors[0]},<3.{int(minors[-1].partition('.')[2]) + 1}"


def newest_run(minors: Iterable[str]) -> tuple[str, ...]:
    """Return the newest minors without a gap between them, which a range can have."""
    found: list[str] = []
    for minor in sorted(minors, key=Version, reverse=True):
        if not found or int(found[-1].partition(".")[2]) == int(minor.partition(".")[2]) + 1:
            found.append(minor)
    return tuple(reversed(found))


def best_run(answers: Mapping[str, Any], some: Collection[str]) -> tuple[str, ...]:
    """Return the minors in a row with one answer: most of the current ones, then the longest row, then the newest.

    Args:
        answers: The answer for each minor, oldest first.
        some: The minors with requests; others count last.
    """
    rows = [tuple(row) for _, row in groupby(reversed([*answers]), answers.__getitem__)]
    rank = {row: (row[0] in some, len({*row} & {*DEFAULT_MINORS}), len(row)) for row in rows}
    return max(rows, key=rank.__getitem__, default=())[::-1]


def alike(
    asked: Mapping[str, Collection[tuple[str, str]]], accepted: str, notes: list[str]
) -> tuple[tuple[str, ...], str]:
    """Return the most Pythons in a row with the same requests, since a manifest has one set of requests for all.

    The row is the one of `best_run`.

    Args:
        asked: The platforms and names of the requests of each minor, oldest first.
        accepted: The range of all these Pythons.
        notes: Receives a note if there are fewer of them.

    Returns:
        The minors, and their range.
    """
    minors = best_run({minor: frozenset(rows) for minor, rows in asked.items()}, [one for one in asked if asked[one]])
    if len(minors) == len(asked):
        return minors, accepted
    names = {name for other in asked.values() for _, name in set(asked[minors[0]]) ^ set(other)}
    found, same = range_of(minors), len({frozenset(other) for other in asked.values() if other}) == 1
    why = "the file is for these alone" if same else f"other Pythons have other requests ({', '.join(sorted(names))})"
    notes.append(f"`python` is set to {found}: {why}")
    return minors, found
