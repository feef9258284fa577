"""The table of a benchmark, as Markdown."""

import statistics
from collections.abc import Iterable, Iterator, Sequence

from sides import Figure, Row, Run

HEAD = (
    "work",
    "peer",
    "tenv",
    "peer's",
    "ratio",
    "95 %",
    "aim",
    "met",
    "CPU time",
    "memory",
    "rounds",
)
FLOOR_HEAD = ("work", "floor", "floor's", "to the peer's", "95 %", "aim", "tenv to the floor")
_UNITS = ((10, "s", 1, 1), (0.01, "ms", 1000, 0))


def lines(figures: Iterable[Figure]) -> Iterator[str]:
    """Yield the lines of the table, one for each peer of each row, as they are measured."""
    yield f"| {' | '.join(HEAD)} |"
    yield "|" + "|".join("---" if name in ("work", "peer", "met") else "--:" for name in HEAD) + "|"
    for figure in figures:
        for number, peer in enumerate(figure.theirs):
            yield f"| {' | '.join(_cells(figure, peer, first=number == 0))} |"


def floor_lines(figures: Iterable[Figure]) -> Iterator[str]:
    """Yield the lines of a table of floors: of the rows that have one, how it compares with the first peer."""
    yield f"| {' | '.join(FLOOR_HEAD)} |"
    yield "|" + "|".join("---" if name in ("work", "floor") else "--:" for name in FLOOR_HEAD) + "|"
    for figure in figures:
        if figure.row.floor:
            row, time = figure.row, _median(figure.least)
            compared, ends, aim = _compared(row, figure.floor_compared())
            more = f"{_median(figure.ours) / time:.2f}"
            cells = (row.work, row.floor[0], _time(time / row.each), compared, ends, aim, more)
            yield f"| {' | '.join(cells)} |"


def _compared(row: Row, interval: tuple[float, float, float]) -> tuple[str, str, str]:
    """Return a median, the ends of its interval and the aim, as texts."""
    middle, low, high = interval
    if row.most is not None:
        return f"+{_time(middle)}", f"{_time(low)} to {_time(high)}", f"+{_time(row.most)}"
    return f"{middle:.2f}", f"{low:.2f} to {high:.2f}", f"{row.aim:.2f}" if row.aim else ""


def _cells(figure: Figure, peer: str, *, first: bool) -> tuple[str, ...]:
    row, theirs = figure.row, figure.theirs[peer]
    compared, ends, aim = _compared(row, figure.compared(peer))
    met = figure.is_met() if first else None
    return (
        row.work,
        peer,
        _time(_median(figure.ours) / row.each),
        _time(_median(theirs) / row.each),
        compared,
        ends,
        aim if first else "",
        "" if met is None else "yes" if met else "no",
        f"{_cpu(figure.ours) / max(_cpu(theirs), 1e-6):.2f}",
        f"{_memory(figure.ours)}, {_memory(theirs)} MiB",
        str(row.rounds),
    )


def _median(runs: Sequence[Run]) -> float:
    return statistics.median(run.seconds for run in runs)


def _cpu(runs: Sequence[Run]) -> float:
    return statistics.median(run.cpu for run in runs)


def _memory(runs: Sequence[Run]) -> int:
    return round(max(run.memory for run in runs) / (1 << 20))


def _time(seconds: float) -> str:
    for least, unit, scale, digits in _UNITS:
        if seconds >= least:
            return f"{seconds * scale:.{digits}f} {unit}"
    return f"{seconds * 1000:.2f} ms"
