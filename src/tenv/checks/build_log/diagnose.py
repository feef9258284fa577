"""Find why a build failed from its log: the first failed step, its first error, and the cause from the table.

The head of ``facts/data/build_failures.toml`` documents how a log is read.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from tenv.checks.build_log.literals import Sieve
from tenv.checks.build_log.log_lines import LogLine, clean
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.dataclass import dataclass
from tenv.facts.build_failures import BuildFailure, BuildFailureTable, FailureKind, LogMarks

__all__ = ["Cause", "Diagnosis", "diagnose", "is_build"]

_ANY = "extension"
"""What a cause is of that any package compiled against torch may have."""

_FAILED = "FAILED: "
_REPORT = 40
"""How many lines CMake may print from an error to the end of a configuration."""

_FOLDED = 8
"""How many lines a sentence may take; what has more is what a compiler printed."""
_BLANKS = 2
"""How many blank lines end a message of CMake."""

_STEP = re.compile(
    r"^(\S*CMake Error\b|g?make(\[\d+\])?: \*\*\* |ninja: (error|build stopped)|error: (command|subprocess) "
    r"|ERROR: (Failed|Could not build|Command errored)|Traceback \(most recent call last\))"
)
_ERROR = re.compile(
    r"\b(fatal |internal compiler )?error\b[ :\[]|\berror: |^[\w.]*(Error|Exception):( |$)|"
    r"undefined (reference|symbol)|cannot find -l|: No such file|Killed\b|CMake Error|^nvcc fatal|^ptxas fatal|"
    r"LNK\d{4}|No rule to make target|^\s*(/bin/)?(ba)?sh: .*: (command )?not found$|^ld: (?!warning)",
    re.IGNORECASE,
)
_MESSAGE = re.compile(r"CMake (Error|Warning|Deprecation)|Call Stack |-- ")
"""Lines that begin what CMake prints."""
_BUILD = re.compile(
    r"^\[ *\d+(/\d+|%)\] |^\[ *\d+%\] Built|^-- \S|^(ninja|g?make(\[\d+\])?|cmake|Scanning dependencies of target)\b"
    r"|^(running|copying|creating|writing|building|compiling|linking) \S"
    r"|^(Collecting|Building|Successfully|Processing) \S"
    r"|^\S*\b(gcc|g\+\+|cc|c\+\+|clang(\+\+)?|nvcc|hipcc|cl|ld)(-\d+)?(\.exe)?:? |^(Cloning into|Submodule) "
    r"|[:)] ?(fatal )?(warning|error)( \w+)?: "
)
"""Lines that only a build, or a tool of it, prints."""

_FRAME = re.compile(
    r"warning|subprocess-exited-with-error|^error: builder for |^note: This error originates|^error: command "
    r"|^subprocess\.CalledProcessError|^error: (metadata-generation-failed|legacy-install-failure|failed-wheel-build)"
    r"|^g?make(\[\d+\])?: \*\*\* \[|ninja: build stopped",
    re.IGNORECASE,
)
"""Lines that frame an error but are not errors themselves."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause that a line of a log names.

    Attributes:
        failure: The row of the table.
        line: The line.
    """

    failure: BuildFailure
    line: LogLine

    def finding(self) -> Finding:
        """Return the cause as a finding."""
        doubt = "" if self.failure.basis.confirmed else " (not confirmed)"
        return Finding(
            code=self.failure.code,
            severity=Severity.WARNING if self.failure.kind is FailureKind.WARNING else Severity.ERROR,
            subject=self.failure.name,
            message=f"{self.failure.title}. {self.failure.cause}{doubt}",
            evidence=f"line {self.line.number}: {self.line.text.strip()}",
            source=self.failure.basis.source,
            fix="; or ".join(map(str, self.failure.remedies)),
        )


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a build's log shows.

    Attributes:
        failed: Whether a step failed and its failure was not ignored.
        step: The line of the first step that failed, such as ninja's ``FAILED:``; None if none is marked.
        error: The first error of that step; None if the log has none.
        cause: Why it failed; None if no row of the table matches.
        others: Other causes found in the log, each once.
    """

    failed: bool
    step: LogLine | None
    error: LogLine | None
    cause: Cause | None
    others: tuple[Cause, ...]


def diagnose(lines: Iterable[str], table: BuildFailureTable, of: str = "") -> Diagnosis:
    """Return the diagnosis of a log.

    Args:
        lines: The lines of the log.
        table: The known causes.
        of: What was built, such as ``pytorch``: causes of other packages do not count, and those of any extension only
            if there is no other. Empty if that is not known.
    """
    log = list(clean(lines))
    if not of:
        return _diagnose(log, table)
    own = tuple(failure for failure in table.failures if of in failure.of)
    any_ = tuple(failure for failure in table.failures if of in failure.of or _ANY in failure.of)
    found = _diagnose(log, replace(table, failures=own))
    return found if found.cause else _diagnose(log, replace(table, failures=any_))


def is_build(lines: Iterable[str]) -> bool:
    """Return whether any line of a text is one that a build prints."""
    return any(_BUILD.search(line.text) for line in clean(lines))


def _diagnose(log: Sequence[LogLine], table: BuildFailureTable) -> Diagnosis:
    marks = table.marks
    end = _last_success(log, marks)
    rest = log[end:]
    causes = _causes(rest, table)
    if not _settled(causes) and end and _fails(rest, marks):
        causes = _causes(log, table)
    failed = _fails(rest, marks)
    chosen = _chosen(causes, failed)
    if chosen is None and not failed:
        return Diagnosis(False, None, None, None, ())
    step = _first_step(rest)
    others = tuple(cause for cause in causes if cause is not chosen and cause.failure.kind is FailureKind.ERROR)
    return Diagnosis(True, step, _first_error(rest, step, marks), chosen, others)


def _last_success(log: Sequence[LogLine], marks: LogMarks) -> int:
    """Return the index after the last line that reports a successful build."""
    success = Sieve(marks.success)
    for index in range(len(log) - 1, -1, -1):
        if success(log[index].text) and not _spoiled(log, index):
            return index + 1
    return 0


def _spoiled(log: Sequence[LogLine], index: int) -> bool:
    """Return whether CMake writes its build files although it reported an error shortly before."""
    before = log[max(index - _REPORT, 0) : index]
    return log[index].text.startswith("-- Build files") and any(line.text.startswith("CMake Error") for line in before)


def _fails(log: Sequence[LogLine], marks: LogMarks) -> bool:
    failed = Sieve(marks.failed)
    return any(failed(line.text) for line in log)


def _settled(causes: Sequence[Cause]) -> bool:
    return any(cause.failure.kind is FailureKind.ERROR for cause in causes)


def _chosen(causes: Sequence[Cause], failed: bool) -> Cause | None:
    """Return the main cause: the first that is neither a frame nor a warning, else the first frame or warning."""
    errors = [cause for cause in causes if cause.failure.kind is FailureKind.ERROR]
    strong = [cause for cause in errors if not cause.failure.weak]
    left_out = [cause for cause in causes if cause.failure.kind is FailureKind.WARNING] if failed else []
    return next(iter(strong or errors or left_out), None)


def _causes(log: Sequence[LogLine], table: BuildFailureTable) -> list[Cause]:
    """Return each cause with the first line or folded paragraph that matches it, in the order of the lines."""
    numbers = [line.number for line in log]
    sieves = [(failure, Sieve(failure.patterns)) for failure in table.failures]
    kept = list(_kept(log, table.marks))
    paragraphs = {lines[-1].number: lines for lines in _paragraphs(log, {line.number for line in kept})}
    found: dict[str, Cause] = {}

    def look(lines: Sequence[LogLine]) -> None:
        """Note the first row that matches lines as one, with the line of them that decides."""
        whole = lines[0] if len(lines) == 1 else LogLine(lines[0].number, " ".join(one.text.strip() for one in lines))
        first, last = lines[0].number - table.marks.window, lines[-1].number + table.marks.window
        for failure, matches in sieves:
            if matches(whole.text) and _around(
                failure, [whole, *log[bisect_left(numbers, first) : bisect_right(numbers, last)]]
            ):
                decisive = next((one for one in lines if matches(one.text)), whole)
                found.setdefault(failure.name, Cause(failure, decisive))
                return

    for line in kept:
        look([line])
        if line.number in paragraphs:
            look(paragraphs[line.number])
    return list(found.values())


def _paragraphs(log: Sequence[LogLine], kept: Collection[int]) -> Iterator[list[LogLine]]:
    """Yield the lines of each folded paragraph of CMake's errors.

    CMake folds its messages at 77 columns, so where a line ends depends on how long the paths in it are. Two blank
    lines end a message.

    Args:
        log: The log.
        kept: The numbers of the lines that may match a cause.
    """
    within, blanks, lines = False, 0, list[LogLine]()
    for line in [*log, LogLine(0, "")]:
        is_head = _MESSAGE.match(line.text) is not None or _STEP.match(line.text) is not None
        blanks = 0 if line.text.strip() else blanks + 1
        if within and not blanks and not is_head:
            lines.append(line)
            continue
        if 1 < len(lines) <= _FOLDED and all(one.number in kept for one in lines):
            yield lines
        lines = []
        within = line.text.startswith("CMake Error") if is_head else within and blanks < _BLANKS


def _around(failure: BuildFailure, near: Sequence[LogLine]) -> bool:
    """Return whether the context of a line matches what the cause requires."""
    if failure.near and not any(pattern.search(one.text) for one in near for pattern in failure.near):
        return False
    return not any(pattern.search(one.text) for one in near for pattern in failure.not_near)


def _kept(log: Sequence[LogLine], marks: LogMarks) -> Iterable[LogLine]:
    """Yield the lines that may match a cause, without noise and output of compiler probes."""
    noise, begin, end = map(Sieve, (marks.noise, marks.probe_begin, marks.probe_end))
    within = False
    for line in log:
        if begin(line.text):
            within = True
        elif within and end(line.text):
            within = False
        if not within and not noise(line.text):
            yield line


def _first_step(log: Sequence[LogLine]) -> LogLine | None:
    """Return the line of the first failed step: the one that Ninja marks, else the first frame of an error."""
    marked = next((line for line in log if line.text.startswith(_FAILED)), None)
    return marked or next((line for line in log if _STEP.match(line.text)), None)


def _first_error(log: Sequence[LogLine], step: LogLine | None, marks: LogMarks) -> LogLine | None:
    """Return the first error of a step: a compiler prints after Ninja's mark and before other frames."""
    behind = step.number if step and step.text.startswith(_FAILED) else 0
    for line in _kept(log, marks):
        if line.number > behind and _ERROR.search(line.text) and not _FRAME.search(line.text):
            return line
    return None
