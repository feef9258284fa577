"""Tables on standard output: two blanks between columns, no frame; on a terminal folded to its width."""

import sys
from collections.abc import Iterable, Sequence

from tenv.cli.fold import fold_beside, fold_table, terminal_width
from tenv.cli.output import out, paint_verdict


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under a header. Each column is as wide as its widest cell; the last column is not padded."""
    table = [tuple(header), *(tuple(str(cell) for cell in row) for row in rows)]
    for cells in fold_table(table, terminal_width(sys.stdout)):
        out(_joined(cells))


def _joined(cells: Sequence[str]) -> str:
    end = max((number for number, cell in enumerate(cells, 1) if cell.strip()), default=0)
    shown = [*cells[: end - 1], *(cell.rstrip() for cell in cells[end - 1 : end])]
    return "  ".join(map(paint_verdict, shown))


def print_labelled(label: str, width: int, value: str) -> None:
    """Print a value after its label, which takes `width` columns; on a terminal, folded beside or below it."""
    columns = terminal_width(sys.stdout)
    label = f"{label:<{width}}"
    for line in [label + value] if columns is None else fold_beside(label, value, columns):
        out(line)
