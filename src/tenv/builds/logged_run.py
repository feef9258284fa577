"""Run the programs of a build: a log is kept, Ninja's status becomes progress, a failure is looked up in the causes.

Ninja itself estimates the time that is left, from the times in its log.
"""

import os
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from tenv.builds.build_job import build_finding
from tenv.checks.build_log.diagnose import diagnose
from tenv.checks.rules.interface import Finding
from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.errors import BugError
from tenv.core.files import make_folder
from tenv.core.missing import Missing
from tenv.core.progress import Progress
from tenv.core.versions import Version
from tenv.facts.build_failures import BuildFailureTable

__all__ = ["NINJA_STATUS", "SIGNAL_SOURCE", "Ran", "look_up", "run_logged"]

SIGNAL_SOURCE = "signal(7)"
"""The source of a finding about a program that a signal ended, which is no fault of its sources."""

NINJA_STATUS = "[%f/%t] "
"""Ninja's default, whatever the user's shell sets: these lines are read here, and in logs by other programs."""

_WITH_ESTIMATE = f"{NINJA_STATUS}%E "
"""With the seconds that are left by Ninja's estimate, or ``?``; the log is kept without them."""

_ESTIMATES = Version("1.12")
"""The first Ninja that knows ``%E``; an older one ends at it."""

_STATUS = re.compile(r"^(\[ *(\d{1,9})/(\d{1,9})\] )(?:(\?|\d+\.\d+) )?")
_PLAIN_STATUS = re.compile(r"^(\[ *(\d{1,9})/(\d{1,9})\] )()")
_PERCENT = re.compile(r"^\[ *(\d{1,3})%\] ")
_SECONDS = 20.0
_SAY_EVERY = 60.0
_TAIL = 3


@dataclass(frozen=True, slots=True)
class Ran:
    """A program of a build that has ended.

    Attributes:
        status: Its exit status; negative for a signal.
        lines: Its output.
        seconds: How long it took.
        reason: Why it could not be started, or an empty string.
        processor: Seconds of processors that it and the programs below it took, in user and system mode; 0 where the
            system does not count them.
    """

    status: int
    lines: tuple[str, ...]
    seconds: float
    reason: str = ""
    processor: float = 0.0


class _Watcher:
    """Writes the log, and turns Ninja's status into progress with the time that is left."""

    def __init__(self, progress: Progress, title: str, log: TextIO, status: re.Pattern[str]) -> None:
        self.lines: list[str] = []
        self._progress, self._title, self._log, self._status = progress, title, log, status
        self._reported = time.monotonic()
        self._done = self._total = 0

    def __call__(self, line: str) -> None:
        match = self._status.match(line)
        if match:
            line = match[1] + line[match.end() :]
        self.lines.append(line)
        self._log.write(f"{line}\n")
        if match:
            self._report(int(match[2]), int(match[3]), match[4] or "?")
        elif match := _PERCENT.match(line):
            self._report(int(match[1]), 100, "?")

    def _report(self, done: int, total: int, left: str) -> None:
        if total != self._total:
            self._total, self._done = total, 0
            self._progress.resize(total)
        self._progress.advance(done - self._done)
        self._done = done
        now = time.monotonic()
        if now - self._reported >= _SAY_EVERY and done < total:
            self._reported = now
            words = "" if left == "?" else f", about {max(1, round(float(left) / 60))} min left"
            self._progress.say(f"{self._title}: {done} of {total}{words}")


def run_logged(
    command: Sequence[str],
    log: Path,
    *,
    environ: Mapping[str, str],
    folder: Path,
    progress: Progress,
    title: str,
    ninja: str = "",
    again: bool = False,
) -> Ran:
    """Run a program of a build to its end.

    Args:
        command: The program and its arguments; the program is searched on the PATH of `environ`.
        log: The file for the command and its output.
        environ: Its environment.
        folder: Its working folder.
        progress: Who watches.
        title: Its name in progress.
        ninja: The Ninja that it runs, which may know the time that is left; empty for none.
        again: Whether to append to the log of an earlier program of the step.
    """
    make_folder(log.parent)
    with log.open("a" if again else "w", encoding="utf-8", buffering=1) as file:
        file.write(f"$ {shlex.join(command)}\n")
        program = process.find(command[0], environ.get("PATH"))
        if program is None:
            return Ran(127, (), 0.0, f"there is no program `{command[0]}` in the environment or on PATH")
        progress.step(title)
        status, pattern = (_WITH_ESTIMATE, _STATUS) if _estimates(ninja, environ) else (NINJA_STATUS, _PLAIN_STATUS)
        watcher, start, processor = _Watcher(progress, title, file, pattern), time.monotonic(), _processor_seconds()
        full = {**environ, "NINJA_STATUS": status}
        ended = process.stream([program, *command[1:]], watcher, environment=full, folder=folder)
    seconds = time.monotonic() - start
    if isinstance(ended, Missing):
        return Ran(127, (), seconds, ended.reason)
    return Ran(ended, tuple(watcher.lines), seconds, processor=_processor_seconds() - processor)


def _estimates(ninja: str, environ: Mapping[str, str]) -> bool:
    """Return whether a Ninja estimates the time that is left."""
    answer = process.run([ninja, "--version"], environment=environ, timeout=_SECONDS) if ninja else Missing("no Ninja")
    version = None if isinstance(answer, Missing) or answer.status else Version.find(answer.stdout)
    return version is not None and version >= _ESTIMATES


def _processor_seconds() -> float:
    """Return the processor seconds of the ended child processes, with their own children."""
    counted = os.times()
    return counted.children_user + counted.children_system


def look_up(ran: Ran, code: str, what: str, log: Path, table: BuildFailureTable) -> Finding:
    """Return the finding for a program that failed: the cause that the table knows, else its first error.

    Args:
        ran: The program.
        code: The code of a failure whose cause is not known.
        what: The failed part, in words.
        log: Where its log is.
        table: The known causes.
    """
    if ran.status == 0 and not ran.reason:
        raise BugError(f"{what} has not failed")
    found = diagnose([*ran.lines, "ninja: build stopped: subcommand failed."], table, of="pytorch")
    if ran.reason:
        return build_finding(code, what, f"can't be done: {ran.reason}", str(log), "", f"see {log}")
    if found.cause is not None:
        return found.cause.finding()
    if -ran.status in (9, 15) or ran.status in (137, 143):
        message = f"was ended by signal {-ran.status if ran.status < 0 else ran.status - 128}"
        fix = "`dmesg | tail` tells whether memory ran out; `MAX_JOBS=1 tenv build` takes the least of it"
        return build_finding(code, what, message, str(log), SIGNAL_SOURCE, fix)
    error = found.error or found.step
    if error is None or error.number > len(ran.lines):  # the last line is not the program's own
        tail = " | ".join([line.strip() for line in ran.lines if line.strip()][-_TAIL:])
        message = f"ended with status {ran.status} and printed no error, as a program that was killed does"
        fix = f"`dmesg | tail` tells whether memory ran out; else read {log}, then run the same command again"
        return build_finding(code, what, message, f"{log}: the last lines: {tail}", SIGNAL_SOURCE, fix)
    message = f"ended with status {ran.status}; tenv does not know the cause"
    line = f"line {error.number}: {error.text.strip()}"
    return build_finding(code, what, message, f"{log}: {line}", "", f"read {log}, then run the same command again")
