"""The page of ``tenv check --against … --html FILE``: targets down, equal machines across."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenv.cli.output import count
from tenv.core.files import write_atomic
from tenv.core.page import render_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenv.checks.fleet import MachineVerdicts
    from tenv.checks.judge import Verdicts

__all__ = ["FleetPage"]


class FleetPage:
    """The machines of a page; equal answers, findings and machines are in it once."""

    def __init__(self, file: Path, word: "Callable[[Verdicts], str]") -> None:
        """Begin a page.

        Args:
            file: The file to write.
            word: Returns an answer as one word.
        """
        self._file = file
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
        write_atomic(self._file, text)


def _kind(answer: "Verdicts") -> str:
    """Return the color of an answer."""
    if answer.build is None or answer.run is None:
        return "bad" if answer.build is False else "unknown"
    return ("bad", "part", "good")[answer.build + answer.run]
