"""The machines of a fleet with the answers about them: kept apart from memory, shown as a table or as JSON.

The widths of a table and the `ok` of an envelope follow from all machines, so a machine waits until the last one is
read. What many machines have in common is kept and laid out once; the rest of each waits in a file.
"""

import json
import marshal
import sys
import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise, starmap
from typing import IO, TYPE_CHECKING, Any

from tenv.cli.fold import cells_of, terminal_width
from tenv.cli.output import Pieces, count, out, paint_verdict
from tenv.cli.table import lay_out, print_table

if TYPE_CHECKING:
    from tenv.checks.fleet import MachineVerdicts

__all__ = ["Machines"]

_BATCH = 1024
"""Machines that wait in memory before they are written."""
_LINES = 128
"""Lines of a table that are written at once."""
_IN_MEMORY = 1 << 20
"""Bytes from which on they wait in a file."""
_INDENT = " " * 6


class Machines:
    """Machines in their order.

    Attributes:
        count: Their number.
        broken: The number of those whose report is unreadable.
        targets: The names of the targets that the answers are about; None if there is no answer.
    """

    def __init__(self, rows: "Iterable[MachineVerdicts[Any]]", target: Callable[[Any], str]) -> None:
        """Read all machines; `target` returns the name of the target that an answer is about."""
        self._target = target
        self.count = self.broken = 0
        self.targets: list[str] | None = None
        self._kinds: list[MachineVerdicts[Any]] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self._equal: dict[tuple[object, ...], int] = {}
        self._hashes = array("q")
        self._waiting: list[tuple[str, str, str, int]] = []
        self._batches: list[bytes] | IO[bytes] = []
        self._bytes = self._width = 0
        for row in rows:
            self._add(row)

    def _add(self, row: "MachineVerdicts[Any]") -> None:
        self.broken += bool(row.problem)
        self.count += 1
        self._hashes.append(hash(row.machine))
        if (width := cells_of(row.machine)) > self._width:
            self._width = width
        self._waiting.append((row.machine, row.source, row.problem, self._kind(row)))
        if len(self._waiting) >= _BATCH:
            self._write()

    def _kind(self, row: "MachineVerdicts[Any]") -> int:
        """Return the number of what a machine has in common with others; all with a problem have the same."""
        parts = (0, 0, 0) if row.problem else (id(row.driver), id(row.gpus), id(row.answers))
        number = self._numbers.get(parts)
        if number is None:
            shown = (bool(row.problem), *row.driver.values(), *row.gpus, *map(id, row.answers))
            number = self._equal.get(shown)
        if number is None:  # the row is kept, so that nothing else has the identity of its parts
            number = self._numbers[parts] = self._equal[shown] = len(self._kinds)
            self._kinds.append(row)
            if self.targets is None and not row.problem:
                self.targets = [self._target(answer) for answer in row.answers]
        return number

    def _write(self) -> None:
        batch = marshal.dumps(self._waiting)
        self._waiting = []
        self._bytes += len(batch)
        if isinstance(self._batches, list) and self._bytes > _IN_MEMORY:
            import tempfile  # late: few fleets are that large

            earlier, self._batches = self._batches, tempfile.TemporaryFile()  # noqa: SIM115 (closed with `self`)
            weakref.finalize(self, self._batches.close)
            for one in earlier:
                self._batches.write(len(one).to_bytes(8) + one)
        if isinstance(self._batches, list):
            self._batches.append(batch)
        else:
            self._batches.write(len(batch).to_bytes(8) + batch)

    def __iter__(self) -> Iterator[tuple[str, str, str, int]]:
        """Yield the name of each machine, the origin of its report, its problem and the number of its kind."""
        if isinstance(self._batches, list):
            for batch in self._batches:
                yield from marshal.loads(batch)  # noqa: S302 (written above)
        else:
            self._batches.seek(0)
            while size := self._batches.read(8):
                yield from marshal.loads(self._batches.read(int.from_bytes(size)))  # noqa: S302 (written above)
        yield from self._waiting

    def all(self, is_fine: Callable[[Any], bool]) -> bool:
        """Return whether every report is readable and every answer fine."""
        return not self.broken and all(is_fine(answer) for kind in self._kinds for answer in kind.answers)

    def to_json(self, answer: Callable[[Any], Any]) -> Pieces:
        """Return the JSON value of a command's ``data`` in pieces; `answer` converts an answer to JSON values."""
        return Pieces(self._pieces(answer))

    def _pieces(self, answer: Callable[[Any], Any]) -> Iterator[str]:
        texts: list[str] = []
        for kind in self._kinds:
            whole = kind.to_json(answer)
            common = {key: whole[key] for key in ("driver", "gpus", "targets")}
            texts.append(json.dumps(common, indent=2)[1:-2].replace("\n", f"\n{_INDENT}"))
        yield '{\n    "machines": ['
        between = ""
        for machine, source, problem, number in self:
            first = json.dumps({"machine": machine, "source": source}, indent=2)[:-2].replace("\n", f"\n{_INDENT}")
            last = f'"problem": {json.dumps(problem)}'
            yield f"{between}\n{_INDENT}{first},{texts[number]},\n{_INDENT}  {last}\n{_INDENT}}}"
            between = ","
        yield "\n    ]\n  }" if between else "]\n  }"

    def show(self, cell: Callable[[Any], str]) -> None:
        """Print one row per machine, with one column per target, whose text `cell` returns."""
        names = self.targets or []
        problems = ("PROBLEM",) if self.broken else ()
        head = ("MACHINE", "DRIVER", "GPU", *names, *problems)
        common = [self._cells(kind, names, cell) for kind in self._kinds]
        twice = self._twice()

        def first(machine: str, source: str) -> str:
            return f"{machine} ({source})" if machine in twice else machine

        if terminal_width(sys.stdout) is not None:
            last = (lambda problem: (problem,)) if problems else (lambda _: ())
            print_table(head, [(first(one, source), *common[at], *last(why)) for one, source, why, at in self])
            return
        widths = [0] * len(head)
        for row in (head, *(("", *cells) for cells in common)):
            widths = [max(width, cells_of(text)) for width, text in zip(widths, (*row, ""), strict=False)]
        widths[0] = max(widths[0], self._width)
        for machine, source, problem, _ in self if twice or self.broken else ():
            widths[0] = max(widths[0], cells_of(first(machine, source)))
            if problem:
                widths[-1] = max(widths[-1], cells_of(problem))
        out(lay_out(head, widths))
        blank = ("",) * len(problems)
        tails = [lay_out((*cells, *blank), widths[1:]) for cells in common]

        def line(machine: str, source: str, problem: str, at: int) -> str:
            name = first(machine, source)
            padded = paint_verdict(name + " " * (widths[0] - cells_of(name)))  # never the last one in its row
            return f"{padded}  {lay_out((*common[at], problem), widths[1:]) if problem else tails[at]}"

        machines = iter(self)
        while batch := list(islice(machines, _LINES)):
            out(*starmap(line, batch))

    def _cells(self, kind: "MachineVerdicts[Any]", names: Sequence[str], cell: Callable[[Any], str]) -> tuple[str, ...]:
        driver = kind.driver.get("value", "" if kind.problem else "none")
        cells = [cell(answer) for answer in kind.answers] if not kind.problem else [""] * len(names)
        return (driver or "?", ", ".join(dict.fromkeys(kind.gpus)) or "-", *cells)

    def _twice(self) -> set[str]:
        """Return the names that several machines have."""
        ordered = sorted(self._hashes)
        hashes = {one for one, other in pairwise(ordered) if one == other}
        if not hashes:
            return set()
        times = Counter(machine for machine, *_ in self if hash(machine) in hashes)
        return {machine for machine, number in times.items() if number > 1}

    def summary(self) -> str:
        """Return how many there are, in words."""
        broken = f", {count(self.broken, 'broken report')}" if self.broken else ""
        return count(self.count, "machine") + broken
