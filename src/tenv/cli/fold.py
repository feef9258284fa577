"""Text and tables folded to the width of a terminal; a word is never cut.

A stream that is no terminal has no width: its lines stay whole, fit for `grep` and for files.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import TextIO

from tenv.core.untrusted import whole_number

_GAP = 2
_NARROWEST = 20
"""Columns below which a width is not believed: some programs report 0 or 1."""
_USUAL = 80
_INDENT = "    "
"""The text before the columns that are below their row."""
_SHORT = 10
"""Columns up to which a cell is kept in one line where there is room for the words of the others."""


def terminal_width(stream: TextIO | None) -> int | None:
    """Return the columns of the terminal behind a stream; None if it is none. COLUMNS wins, as in other programs."""
    try:
        if stream is None or not stream.isatty():
            return None
        given = whole_number(os.environ.get("COLUMNS", ""))
        columns = os.get_terminal_size(stream.fileno()).columns if given is None else given
    except (OSError, ValueError):
        return _USUAL
    return columns if columns >= _NARROWEST else _USUAL


def fold_line(text: str, width: int, hang: int = 0) -> list[str]:
    """Fold one line at its blanks; further lines are indented by the indent of the first plus `hang`."""
    if cells_of(text) <= width:
        return [text]
    indent = text[: len(text) - len(text.lstrip(" "))]
    lines, line = [], indent
    for word in text.split():
        gap = " " if line.strip() else ""
        if line.strip() and cells_of(line) + len(gap) + cells_of(word) > width:
            lines.append(line)
            line, gap = " " * max(0, min(len(indent) + hang, width - cells_of(word))), ""
        line += gap + word
    return [*lines, line]


def fold_beside(label: str, value: str, width: int) -> list[str]:
    """Fold a value beside its label; below it where a word of the value has no room there."""
    room = width - cells_of(label)
    if _longest_word(value) > room and label.strip():
        return [label.rstrip(), *fold_line(_INDENT + value, width)]
    first, *further = fold_line(value, room)
    return [label + first, *(" " * cells_of(label) + line for line in further)]


def fold_pieces(pieces: Sequence[str], width: int) -> Iterator[str]:
    """Yield lines of whole pieces, two blanks between them; a piece that is too long is folded."""
    line = ""
    for piece in pieces:
        if line and _joined(line, piece) > width:
            yield line
            line = ""
        line = f"{line}{' ' * _GAP}{piece}" if line else piece
        if cells_of(line) > width:
            *lines, line = fold_line(line, width)
            yield from lines
    if line:
        yield line


def fold_table(table: Sequence[Sequence[str]], width: int | None) -> Iterator[list[str]]:
    """Yield the lines of a table, each as its padded cells; the first row is the header.

    A table that is too wide has cells of several lines, or its last columns below each row, whichever takes fewer
    lines. If the words of two columns alone are too wide, each row becomes a block of lines `HEADER  cell`.

    Args:
        table: The rows.
        width: The columns that the lines may take; None for any number.
    """
    widths = _widths(table, width)
    if width is None or widths == _widths(table, None):
        yield from _side_by_side(table, widths or [])
        return
    ways = [_side_by_side(table, widths)] if widths else []
    less = [_widths([row[:kept] for row in table], width) for kept in range(len(table[0]) - 1, 1, -1)]
    ways += [[*_below(table, widths, width)] for widths in less if widths]
    yield from min(ways, key=len) if ways else _blocks(table, width)


def _widths(table: Sequence[Sequence[str]], width: int | None) -> list[int] | None:
    """Return the widths of the columns side by side; None if the words are too wide."""
    natural = [max(cells_of(row[column]) for row in table) for column in range(len(table[0]))]
    return natural if width is None else _fitted(table, natural, width - _GAP * (len(natural) - 1))


def _side_by_side(table: Sequence[Sequence[str]], widths: Sequence[int]) -> list[list[str]]:
    """Return the lines of the first columns of a table, as many as there are widths."""
    found = []
    for row in table:
        cells = [fold_line(cell, room) if cell else [""] for cell, room in zip(row, widths, strict=False)]
        for number in range(max(map(len, cells))):
            line = [lines[number] if number < len(lines) else "" for lines in cells]
            found.append([_padded(text, room) for text, room in zip(line, widths, strict=True)])
    return found


def _below(table: Sequence[Sequence[str]], widths: Sequence[int], width: int) -> Iterator[list[str]]:
    """Yield the lines of a table with its first columns side by side and the others below each row.

    A single column below has its header below the headers; several have theirs before each cell.
    """
    header, kept = table[0], len(widths)
    single = kept == len(header) - 1
    for number, row in enumerate(table):
        yield from _side_by_side([row], widths)
        if single:
            yield from ([line] for line in fold_line(_INDENT + row[kept], width) if row[kept])
        elif number:
            yield from _labelled(header[kept:], row[kept:], width)


def _labelled(header: Sequence[str], row: Sequence[str], width: int) -> Iterator[list[str]]:
    """Yield lines of cells with their headers before them; empty cells are left out."""
    line: list[str] = []
    for name, cell in zip(header, row, strict=True):
        if not cell:
            continue
        if line and _joined(*line, name, cell) > width:
            yield line
            line = []
        line += [name if line else _INDENT + name, cell]
        if _joined(*line) > width:  # one cell that is too long
            start = " " * (cells_of(line[0]) + _GAP)
            first, *further = fold_line(cell, width - len(start))
            yield [line[0], first]
            yield from ([start + text] for text in further)
            line = []
    if line:
        yield line


def _joined(*cells: str) -> int:
    """Return the columns that the cells of a line take."""
    return sum(map(cells_of, cells)) + _GAP * (len(cells) - 1)


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
    for column, full in enumerate(natural):  # the rest above the cap
        widths[column] += min(full - widths[column], room - sum(widths))
    return widths


def _blocks(table: Sequence[Sequence[str]], width: int) -> Iterator[list[str]]:
    header, *rows = table
    label = max(map(cells_of, header)) + _GAP
    for number, row in enumerate(rows):
        if number:
            yield [""]
        for name, cell in zip(header, row, strict=True):
            lines = fold_line(" ".join(cell.split()), width - label) if cell else []
            yield from ([_padded(name if not at else "", label) + line] for at, line in enumerate(lines))


def _longest_word(text: str) -> int:
    return max(map(cells_of, text.split()), default=0)


def _piece(text: str) -> int:
    """Return the columns that a cell needs at least; a short one, such as `28.3 KiB`, stays whole."""
    return whole if (whole := cells_of(text)) <= _SHORT else _longest_word(text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells_of(text))


def cells_of(text: str) -> int:
    """Return the columns that a text takes on a terminal; colors take none."""
    if "\x1b" in text:
        text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    if text.isascii():
        return len(text)
    from unicodedata import east_asian_width  # late: few texts have such letters

    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
