"""Text and tables folded to the width of a terminal; a word is never cut.

A stream that is no terminal has no width: its lines stay whole, fit for `grep` and for files.
"""

import os
from collections.abc import Iterator, Sequence
from typing import TextIO

__all__ = ["fold_line", "fold_table", "terminal_width"]

_GAP = 2
_NARROWEST = 20
"""Columns below which a width is not believed: some programs report 0 or 1."""
_USUAL = 80
_SHORT = 10
"""Columns up to which a cell is kept in one line where there is room for the words of the others."""


def terminal_width(stream: TextIO | None) -> int | None:
    """Return the columns of the terminal behind a stream; None if it is none. COLUMNS wins, as in other programs."""
    try:
        if stream is None or not stream.isatty():
            return None
        given = os.environ.get("COLUMNS", "")
        columns = int(given) if given.isdecimal() else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return _USUAL
    return columns if columns >= _NARROWEST else _USUAL


def fold_line(text: str, width: int, hang: int = 0) -> list[str]:
    """Fold one line at its blanks; further lines are indented by the indent of the first plus `hang`."""
    if _cells(text) <= width:
        return [text]
    indent = text[: len(text) - len(text.lstrip(" "))]
    lines, line = [], indent
    for word in text.split():
        gap = " " if line.strip() else ""
        if line.strip() and _cells(line) + len(gap) + _cells(word) > width:
            lines.append(line)
            line, gap = " " * max(0, min(len(indent) + hang, width - _cells(word))), ""
        line += gap + word
    return [*lines, line]


def fold_table(table: Sequence[Sequence[str]], width: int | None) -> Iterator[list[str]]:
    """Yield the lines of a table, each as its padded cells; the first row is the header.

    A table that is too wide has cells of several lines. If its words alone are too wide, each row becomes a block of
    lines `HEADER  cell`.

    Args:
        table: The rows.
        width: The columns that the lines may take; None for any number.
    """
    natural = [max(_cells(row[column]) for row in table) for column in range(len(table[0]))]
    widths = natural if width is None else _fitted(table, natural, width - _GAP * (len(natural) - 1))
    if widths is None:
        yield from _blocks(table, width or _USUAL)
        return
    for row in table:
        cells = [fold_line(cell, room) if cell else [""] for cell, room in zip(row, widths, strict=True)]
        for number in range(max(map(len, cells))):
            line = [lines[number] if number < len(lines) else "" for lines in cells]
            yield [_padded(text, room) for text, room in zip(line, widths, strict=True)]


def _fitted(table: Sequence[Sequence[str]], natural: Sequence[int], room: int) -> list[int] | None:
    """Return the widths of the columns in some room: wide ones shrink first, none below its longest word."""
    if sum(natural) <= room:
        return list(natural)
    ways = [
        [max(one(row[column]) for row in table) for column in range(len(natural))] for one in (_piece, _longest_word)
    ]
    least = next((way for way in ways if sum(way) <= room), None)
    if least is None:
        return None

    def capped(cap: int) -> list[int]:
        return [min(full, max(low, cap)) for full, low in zip(natural, least, strict=True)]

    cap = max(cap for cap in range(room + 1) if sum(capped(cap)) <= room)
    widths = capped(cap)
    for column, full in enumerate(natural):  # what the cap leaves over
        widths[column] += min(full - widths[column], room - sum(widths))
    return widths


def _blocks(table: Sequence[Sequence[str]], width: int) -> Iterator[list[str]]:
    header, *rows = table
    label = max(map(_cells, header)) + _GAP
    for number, row in enumerate(rows):
        if number:
            yield [""]
        for name, cell in zip(header, row, strict=True):
            lines = fold_line(" ".join(cell.split()), width - label) if cell else []
            yield from ([_padded(name if not at else "", label) + line] for at, line in enumerate(lines))


def _longest_word(text: str) -> int:
    return max(map(_cells, text.split()), default=0)


def _piece(text: str) -> int:
    """Return the columns that a cell needs at least; a short one, such as `28.3 KiB`, stays whole."""
    return whole if (whole := _cells(text)) <= _SHORT else _longest_word(text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _cells(text))


def _cells(text: str) -> int:
    """Return the columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import east_asian_width  # late: few texts have such letters

    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
