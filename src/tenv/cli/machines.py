"""The machines of a fleet with the answers about them, as a table or as JSON."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tenv.cli.check import left_out
from tenv.cli.output import Pieces, Result, Voice, count
from tenv.cli.table import print_table
from tenv.core.errors import Exit

if TYPE_CHECKING:
    from tenv.checks.fleet import MachineVerdicts
    from tenv.checks.judge import Verdicts
    from tenv.project.context import Context

__all__ = ["Machines"]

_INDENT = " " * 6


class Machines:
    """Machines in their order, each with the text of its answers, which equal machines share."""

    def __init__(
        self, voice: Voice, machines: "Iterable[MachineVerdicts[Verdicts]]", is_fine: "Callable[[Verdicts], bool]"
    ) -> None:
        """Prepare to read machines.

        Args:
            voice: Decides on a table or JSON.
            machines: The machines.
            is_fine: Returns whether an answer is fine.
        """
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
            decides: Whether the answers decide the exit status, as for a named target.
        """
        fine, known = True, dict[object, object]()
        for machine in self._machines:
            self._broken += bool(machine.problem)
            fine = fine and not machine.problem and all(map(self._is_fine, machine.answers))
            if self._targets is None and not machine.problem:
                self._targets = [answer.target for answer in machine.answers]
            text = _json_text(machine, to_json) if self._json else _cells(machine, to_cell)
            self._rows.append((machine.machine, machine.source, machine.problem, known.setdefault(text, text)))
        broken = f", {count(self._broken, 'broken report')}" if self._broken else ""
        judged = self._targets
        return Result(
            Pieces(self._pieces()) if self._json else [],
            text=self._show,
            summary=(
                f"{count(len(self._rows), 'machine')}{broken}",
                *(() if judged is None or len(judged) == 1 else left_out(context, judged)),
            ),
            status=Exit.DONE if fine or not decides else Exit.CHECK,
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

    def _show(self) -> None:
        """Print one row per machine, with one column per target."""
        names = self._targets or []
        problems = ("PROBLEM",) if self._broken else ()
        twice = {machine for machine, number in Counter(row[0] for row in self._rows).items() if number > 1}
        print_table(
            ("MACHINE", "DRIVER", "GPU", *names, *problems),
            [
                (
                    f"{machine} ({source})" if machine in twice else machine,
                    *(cells or ("?", "-", *[""] * len(names))),
                    *(problem for _ in problems),
                )
                for machine, source, problem, cells in self._rows
            ],
        )


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
