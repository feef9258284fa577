"""The table of a benchmark, as Markdown."""

import statistics
from collections.abc import Iterable, Iterator, Sequence

from sides import Figure, Run

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
_UNITS = ((10, "s", 1, 1), (0.01, "ms", 1000, 0))


def lines(figures: Iterable[Figure]) -> Iterator[str]:
    """Yield the lines of the table, one for each peer of each row, as they are measured."""
    yield f"| {' | '.join(HEAD)} |"
    yield "|" + "|".join("---" if name in ("work", "peer", "met") else "--:" for name in HEAD) + "|"
    for figure in figures:
        for number, peer in enumerate(figure.theirs):
            yield f"| {' | '.join(_cells(figure, peer, first=number == 0))} |"


def _cells(figure: Figure, peer: str, *, first: bool) -> tuple[str, ...]:
    row, theirs = figure.row, figure.theirs[peer]
    middle, low, high = figure.compared(peer)
    met = figure.is_met() if first else None
    if row.most is not None:
        compared, ends, aim = f"+{_time(middle)}", f"{_time(low)} to {_time(high)}", f"+{_time(row.most)}"
    else:
        compared, ends, aim = f"{middle:.2f}", f"{low:.2f} to {high:.2f}", f"{row.aim:.2f}" if row.aim else ""
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
