"""The machines of a fleet with the answers about them, as a table, as JSON or as a page."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from tenv.cli.check import left_out
from tenv.cli.fold import terminal_width
from tenv.cli.output import Pieces, Result, Voice, count, out, print_table
from tenv.core.errors import Exit
from tenv.core.files import write_atomic
from tenv.core.output_file import require_output
from tenv.core.page import is_page, render_page
from tenv.core.size_text import some_of

if TYPE_CHECKING:
    from tenv.checks.fleet import MachineVerdicts
    from tenv.checks.judge import Verdicts
    from tenv.project.context import Context

_INDENT = " " * 6
_NAMES = 8
"""Machines of one kind that the legend names."""

_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

_Column = tuple[str, Sequence[str], list[str]]
"""A column of the table: its letters, its cells after the driver and the GPU, and its machines."""


class Machines:
    """Machines in their order, each with the text of its answers, which equal machines share."""

    def __init__(
        self,
        voice: Voice,
        machines: "Iterable[MachineVerdicts[Verdicts]]",
        is_fine: "Callable[[Verdicts], bool]",
        page: "FleetPage | None" = None,
        repeats: Sequence[str] = (),
        *,
        slurm: bool = False,
    ) -> None:
        """Prepare to read machines.

        Args:
            voice: Decides on a table or JSON.
            machines: The machines.
            is_fine: Returns whether an answer is fine.
            page: The page that gets the machines too, instead of the table.
            repeats: The hosts whose reports came again, which reading the machines fills.
            slurm: Print lines of `slurm.conf` instead of the table; a cell is a feature of a machine, or empty.
        """
        self._repeats = repeats
        self._slurm = slurm
        self._page = page
        self._json = voice.json
        self._machines = machines
        self._is_fine = is_fine
        self._rows: list[tuple[str, str, str, Any]] = []
        self._broken = 0
        self._targets: list[str] | None = None

    def result(
        self,
        context: "Context",
        to_json: "Callable[[Verdicts], dict[str, Any]]",
        to_cell: "Callable[[Verdicts], str]",
        *,
        decides: bool,
    ) -> Result:
        """Read all machines, and return the result of a command.

        Args:
            context: Where targets are found: those that can't be read have no column.
            to_json: Returns an answer as JSON values.
            to_cell: Returns an answer as a cell of the table.
            decides: Whether the answers decide the exit status, as for a named target. Else only a fleet of which no
                report can be read ends with status 1.
        """
        fine, known = True, dict[object, object]()
        for machine in self._machines:
            self._broken += bool(machine.problem)
            fine = fine and not machine.problem and all(map(self._is_fine, machine.answers))
            if self._targets is None and not machine.problem:
                self._targets = [answer.target for answer in machine.answers]
            if self._page:
                self._page.add(machine)
            text = _json_text(machine, to_json) if self._json else _cells(machine, to_cell)
            self._rows.append((machine.machine, machine.source, machine.problem, known.setdefault(text, text)))
        broken = f", {count(self._broken, 'broken report')}" if self._broken else ""
        judged = self._targets
        if self._page:
            self._page.write()
        return Result(
            Pieces(self._pieces()) if self._json else [],
            text="" if self._page else self._features if self._slurm else self._show,
            summary=(
                *(self._without_line() if self._slurm else ()),
                f"{count(len(self._rows), 'machine')}{broken}",
                *([f"{self._page.file} written"] if self._page else ()),
                *self._repeated(),
                *(() if judged is None or len(judged) == 1 else left_out(context, judged)),
            ),
            status=Exit.CHECK if not fine and (decides or judged is None) else Exit.DONE,
        )

    def _pieces(self) -> Iterator[str]:
        """Yield the JSON value of ``data`` in pieces."""
        yield '{\n    "machines": ['
        between = ""
        for machine, source, problem, text in self._rows:
            first = _indented({"machine": machine, "source": source})
            yield f"{between}\n{_INDENT}{{{first},{text},{_indented({'problem': problem})}\n{_INDENT}}}"
            between = ","
        yield "\n    ]\n  }" if between else "]\n  }"

    def _repeated(self) -> Iterator[str]:
        """Yield the sentence about reports that came again."""
        if self._repeats:
            names = some_of([*dict.fromkeys(self._repeats)], _NAMES)
            yield f"{count(len(self._repeats), 'equal report')} more of {names}: each machine counts once"

    def _features(self) -> None:
        """Print a line for each group of machines with equal features; machines without any have none.

        A machine of several reports has the features of all of them.
        """
        found: dict[str, list[str]] = {}
        for machine, source, problem, cells in self._rows:
            if not problem and _is_node(machine, source):
                features = list(filter(None, cells[2:]))
                found[machine] = [one for one in found.get(machine, features) if one in features]
        groups: dict[str, list[str]] = {}
        for machine, features in found.items():
            groups.setdefault(",".join(features), []).append(machine)
        for text, machines in groups.items():
            if text:
                out(f"NodeName={','.join(machines)} Feature={text}")

    def _without_line(self) -> Iterator[str]:
        """Yield the machines that get no line of Slurm, each with the reason."""
        for machine, source, problem, _ in self._rows:
            if problem or not _is_node(machine, source):
                yield f"{source}: {problem or 'its report has no name of a node: ' + repr(machine)}"

    def _show(self) -> None:
        """Print one row per target, with one column per kind of equal machines, and a legend of the columns."""
        kinds: dict[Sequence[str], list[str]] = {}
        twice = {machine for machine, number in Counter(row[0] for row in self._rows).items() if number > 1}
        for machine, source, problem, cells in self._rows:
            if not problem:
                kinds.setdefault(cells, []).append(f"{machine} ({source})" if machine in twice else machine)
        columns = [(_letters(number), cells, names) for number, (cells, names) in enumerate(kinds.items())]
        for some in _fitting(columns, self._targets or [], terminal_width(sys.stdout)):
            rows = [
                (target, *(cells[2 + number] for _, cells, _ in some))
                for number, target in enumerate(self._targets or [])
            ]
            print_table(("TARGET", *(letters for letters, _, _ in some)), rows)
            out()
        legend = [(letters, *cells[:2], some_of(names, _NAMES)) for letters, cells, names in columns]
        if legend:
            print_table(("", "DRIVER", "GPU", "MACHINES"), legend)
        for machine, _, problem, _ in self._rows:
            if problem:
                out(f"{machine}: {problem}")


def _is_node(machine: str, source: str) -> bool:
    """Return whether a machine has a name that a line of `slurm.conf` can have: others can write the reports.

    A line for ``DEFAULT`` would change every node after it (https://slurm.schedmd.com/slurm.conf.html).
    """
    return machine != source and machine.upper() != "DEFAULT" and _NODE.fullmatch(machine) is not None


def _letters(number: int) -> str:
    """Return the name of a column as spreadsheets have it: A to Z, then AA."""
    before, last = divmod(number, len(ascii_uppercase))
    return (_letters(before - 1) if before else "") + ascii_uppercase[last]


def _fitting(columns: list[_Column], targets: Sequence[str], width: int | None) -> Iterator[list[_Column]]:
    """Yield the columns in groups that fit into the width of a terminal."""
    some: list[_Column] = []
    used = first = max(map(len, ("TARGET", *targets)))
    for column in columns:
        wide = 2 + max(map(len, (column[0], *column[1][2:])))
        if some and width is not None and used + wide > width:
            yield some
            some, used = [], first
        some.append(column)
        used += wide
    if some:
        yield some


def _json_text(machine: "MachineVerdicts[Verdicts]", to_json: "Callable[[Verdicts], dict[str, Any]]") -> str:
    """Return the members of a machine that several may share."""
    whole = machine.to_json(to_json)
    return _indented({key: whole[key] for key in ("driver", "gpus", "targets")})


def _indented(members: dict[str, Any]) -> str:
    """Return members of a machine as they stand in the envelope, without the braces around them."""
    return json.dumps(members, indent=2)[1:-2].replace("\n", f"\n{_INDENT}")


def _cells(machine: "MachineVerdicts[Verdicts]", to_cell: "Callable[[Verdicts], str]") -> Sequence[str]:
    """Return the cells of a machine that several may share; none for an unreadable report."""
    if machine.problem:
        return ()
    driver, gpus = machine.driver.get("value", "none"), ", ".join(dict.fromkeys(machine.gpus))
    return (driver or "?", gpus or "-", *map(to_cell, machine.answers))


class FleetPage:
    """The machines of a page; equal answers, findings and machines are in it once."""

    def __init__(self, file: Path, word: "Callable[[Verdicts], str]") -> None:
        """Begin a page.

        Args:
            file: The file to write.
            word: Returns an answer as one word.

        Raises:
            UsageError, FileExistsAlreadyError: It is standard output, or exists and is no page of tenv.
        """
        require_output(file, "--html", "a page of tenv", is_page)
        self.file = file
        self._word = word
        self._targets: list[str] = []
        self._findings: dict[str, int] = {}
        self._cells: dict[str, int] = {}
        self._columns: dict[tuple[Any, ...], list[str]] = {}
        self._broken: list[tuple[str, str]] = []

    def add(self, machine: "MachineVerdicts[Verdicts]") -> None:
        """Add a machine to the column of its equals."""
        if machine.problem:
            self._broken.append((machine.source, machine.problem))
            return
        self._targets = self._targets or [answer.target for answer in machine.answers]
        driver = machine.driver.get("value", "none") or "unknown"
        key = (driver, tuple(dict.fromkeys(machine.gpus)), tuple(map(self._cell, machine.answers)))
        self._columns.setdefault(key, []).append(machine.machine)

    def _cell(self, answer: "Verdicts") -> int:
        """Return the number of an answer with its findings."""
        numbers = [
            self._findings.setdefault(json.dumps(finding.to_json()), len(self._findings)) for finding in answer.findings
        ]
        codes = [*dict.fromkeys(finding.code for finding in answer.findings if finding.severity != "note")]
        cell = {"word": self._word(answer), "kind": _kind(answer), "codes": codes, "findings": numbers}
        return self._cells.setdefault(json.dumps(cell), len(self._cells))

    def write(self) -> None:
        """Write the page.

        Raises:
            StorageError: The file can't be written.
        """
        machines = sum(map(len, self._columns.values()))
        broken = f", {count(len(self._broken), 'broken report')}" if self._broken else ""
        data = {
            "summary": f"{count(machines, 'machine')}, {count(len(self._targets), 'target')}{broken}",
            "targets": self._targets,
            "findings": [json.loads(text) for text in self._findings],
            "cells": [json.loads(text) for text in self._cells],
            "columns": [
                {"machines": names, "driver": driver, "gpus": gpus, "cells": cells}
                for (driver, gpus, cells), names in self._columns.items()
            ],
            "broken": self._broken,
        }
        text = render_page("fleet", "tenv: machines and targets", data)
        write_atomic(self.file, text)


def _kind(answer: "Verdicts") -> str:
    """Return the color of an answer."""
    if answer.build is None or answer.run is None:
        return "bad" if answer.build is False else "unknown"
    return ("bad", "part", "good")[answer.build + answer.run]
