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

from tenv.builds.build_job import BuildJob, build_finding
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

SIGNAL_SOURCE = "signal(7)"
"""The source of a finding about a program that a signal ended, which is no fault of its sources."""

NINJA_STATUS = "[%f/%t] "
"""Ninja's default, whatever the user's shell sets: these lines are read here, and in logs by other programs."""

_WITH_ESTIMATE = f"{NINJA_STATUS}%E "
"""With the seconds that are left by Ninja's estimate, or ``?``; the log is kept without them."""

_ESTIMATES = Version("1.12")
"""The first Ninja that knows ``%E``; an older one ends at it."""

_STATUS = re.compile(r"^ *(\[ *(\d{1,9})/(\d{1,9})\] )(?:(\?|\d+\.\d+) )?")
_PLAIN_STATUS = re.compile(r"^ *(\[ *(\d{1,9})/(\d{1,9})\] )()")
"""pip indents the lines of a build backend."""
_PERCENT = re.compile(r"^\[ *(\d{1,3})%\] ")
_CALL = re.compile(r"^\S*(?:nvcc|cc|gcc|c\+\+|g\+\+|clang)\S* .*-c ")
"""A call of a compiler, which setuptools prints before it runs; Ninja's lines begin with its status."""
_SECONDS = 20.0
_SAY_EVERY = 60.0
_TAIL = 3
_OF_BACKEND = re.compile(r"failed \(signal: (9|15) \(SIG[A-Z]+\)\)")


@dataclass(frozen=True, slots=True)
class Ran:
    """A program of a build that has ended."""

    status: int
    """Its exit status; negative for a signal."""
    lines: tuple[str, ...]
    """Its output."""
    seconds: float
    """How long it took."""
    reason: str = ""
    """Why it could not be started, or an empty string."""
    processor: float = 0.0
    """Seconds of processors that it and the programs below it took, in user and system mode; 0 where the system does
    not count them."""
    before: int = 0
    """The number of lines of the log before its output."""


class _Watcher:
    """Writes the log, and turns Ninja's status into progress with the time that is left."""

    def __init__(self, progress: Progress, title: str, log: TextIO, status: re.Pattern[str], units: int) -> None:
        self.lines: list[str] = []
        self._progress, self._title, self._log, self._status = progress, title, log, status
        self._reported = time.monotonic()
        self._done = self._total = self._before = self._calls = 0
        self._ninja = 0, 0
        self._units = units

    def __call__(self, line: str) -> None:
        match = self._status.match(line)
        if match:
            line = match[1] + line[match.end() :]
        self.lines.append(line)
        self._log.write(f"{line}\n")
        if match:
            self._report(*self._whole(int(match[2]), int(match[3]), match[4] or "?"))
        elif match := _PERCENT.match(line):
            self._report(int(match[1]), 100, "?")
        elif self._units and _CALL.match(line):
            self._calls += 1
            self._report(min(self._calls, self._units) - 1, self._units, "?")

    def _whole(self, done: int, total: int, left: str) -> tuple[int, int, str]:
        """Return the status of all units, where each extension has a Ninja of its own."""
        if not self._units:
            return done, total, left
        if done <= self._ninja[0] or total != self._ninja[1]:
            self._before += self._ninja[0]
        self._ninja = done, total
        whole = max(self._units, self._before + total)
        return self._before + done, whole, left if self._before + total == whole else "?"

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
    units: int = 0,
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
        units: The number of units that it compiles; 0 where Ninja alone knows it.
    """
    make_folder(log.parent)
    with log.open("a" if again else "w", encoding="utf-8", buffering=1) as file:
        file.write(f"$ {shlex.join(command)}\n")
        before = log.read_bytes().count(b"\n")
        program = process.find(command[0], environ.get("PATH"))
        if program is None:
            return Ran(127, (), 0.0, f"there is no program `{command[0]}` in the environment or on PATH")
        progress.step(title)
        status, pattern = (_WITH_ESTIMATE, _STATUS) if _estimates(ninja, environ) else (NINJA_STATUS, _PLAIN_STATUS)
        watcher, start, processor = (
            _Watcher(progress, title, file, pattern, units),
            time.monotonic(),
            _processor_seconds(),
        )
        full = {**environ, "NINJA_STATUS": status}
        ended = process.stream([program, *command[1:]], watcher, environment=full, folder=folder)
    seconds = time.monotonic() - start
    if isinstance(ended, Missing):
        return Ran(127, (), seconds, ended.reason)
    return Ran(ended, tuple(watcher.lines), seconds, processor=_processor_seconds() - processor, before=before)


def run_step(
    job: BuildJob,
    command: Sequence[str],
    log: Path,
    title: str,
    *,
    ninja: str = "",
    again: bool = False,
    units: int = 0,
) -> Ran:
    """Run a program of a step in the checkout of a job, as `run_logged` does."""
    return run_logged(
        command,
        log,
        environ=job.environ,
        folder=job.checkout,
        progress=job.context.progress,
        title=title,
        ninja=ninja,
        again=again,
        units=units,
    )


def _estimates(ninja: str, environ: Mapping[str, str]) -> bool:
    """Return whether a Ninja estimates the time that is left."""
    answer = process.run([ninja, "--version"], environment=environ, timeout=_SECONDS) if ninja else Missing("no Ninja")
    version = None if isinstance(answer, Missing) or answer.status else Version.find(answer.stdout)
    return version is not None and version >= _ESTIMATES


def _processor_seconds() -> float:
    """Return the processor seconds of the ended child processes, with their own children."""
    counted = os.times()
    return counted.children_user + counted.children_system


def _signal_of(ran: Ran) -> int:
    """Return the signal that killed a program or its build backend, whose signal uv prints; 0 for none."""
    if -ran.status in (9, 15) or ran.status in (137, 143):
        return -ran.status if ran.status < 0 else ran.status - 128
    return next((int(found[1]) for line in ran.lines[::-1] if (found := _OF_BACKEND.search(line))), 0)


def look_up(ran: Ran, code: str, what: str, log: Path, table: BuildFailureTable, *, of: str = "pytorch") -> Finding:
    """Return the finding for a program that failed: the cause that the table knows, else its first error.

    Args:
        ran: The program.
        code: The code of a failure whose cause is not known.
        what: The failed part, in words.
        log: Where its log is.
        table: The known causes.
        of: The package, by the words of the table: causes that PyTorch's own sources alone have are none of another.
    """
    if ran.status == 0 and not ran.reason:
        raise BugError(f"{what} has not failed")
    numbered = [*[""] * ran.before, *ran.lines]  # as in the log, whose first line is the command
    found = diagnose([*numbered, "ninja: build stopped: subcommand failed."], table, of=of)
    if ran.reason:
        return build_finding(code, what, f"can't be done: {ran.reason}", str(log), "", f"see {log}")
    if found.own_cause:
        return found.own_cause.finding()
    if signal := _signal_of(ran):
        message = f"was ended by signal {signal}"
        fix = "`dmesg | tail` tells whether memory ran out; `export MAX_JOBS=1` and the same command take least"
        return build_finding(code, what, message, str(log), SIGNAL_SOURCE, fix)
    error = found.error or found.step
    if error is None or error.number > len(numbered):  # the last line is not the program's own
        tail = " | ".join([line.strip() for line in ran.lines if line.strip()][-_TAIL:])
        message = f"ended with status {ran.status} and printed no error, as a program that was killed does"
        fix = f"`dmesg | tail` tells whether memory ran out; else read {log}, then run the same command again"
        return build_finding(code, what, message, f"{log}: the last lines: {tail}", SIGNAL_SOURCE, fix)
    line = f"line {error.number}: {error.text.strip()}"
    if found.cause:
        form = found.cause.finding()
        message = f"ended with status {ran.status}: {form.message}"
        return build_finding(code, what, message, f"{log}: {line}", form.source, form.fix)
    message = f"ended with status {ran.status}; tenv does not know the cause"
    return build_finding(code, what, message, f"{log}: {line}", "", f"read {log}, then run the same command again")
