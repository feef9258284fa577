"""Plain tables on standard output: two blanks between columns, no truncation, no frame; fit for `grep`."""

from collections.abc import Iterable, Sequence

from tenv.cli.output import out

__all__ = ["print_table"]


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under a header. Each column is as wide as its widest cell; the last column is not padded."""
    table = [tuple(header), *(tuple(str(cell) for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        out("  ".join(cells).rstrip())
