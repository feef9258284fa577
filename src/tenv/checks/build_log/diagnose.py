"""Find why a build failed from its log: the first failed step, its first error, and the cause from the table.

The head of ``facts/data/build_failures.toml`` documents how a log is read.
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from itertools import chain

from tenv.checks.build_log.hip_release import ReleaseInLog, standing_of, values
from tenv.checks.build_log.log_lines import LogLine, Sieve, clean, literals, readable
from tenv.checks.build_log.source_places import NamedPlace, named_place, note_after, traced
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.facts.build_failures import BuildFailure, BuildFailureTable, FailureKind, NamedPart, Remedy, filled

_ANY = "extension"
"""What a cause is of that any package compiled against torch may have."""

_FAILED, _OF_BAZEL = "FAILED: ", "FAILED: Build "
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
_ERRORS = (
    r"\berror\b[ :\[]",
    r"\bError\b[ :\[]",
    r"\bERROR\b[ :\[]",
    r"^\s*[\w.]*Error:( |$)",
    r"^\s*[\w.]*Exception:( |$)",
    r"undefined reference",
    r"multiple definition of [`'\u2018]",
    r"[Cc]an't (open file|open perl script|exec) ['\"]",
    r"^E: ",
    r"^(No package '|Package \S+ was not found|thread '.*' panicked|pkg_resources\.Distrib\w+|Hunk #\d+ FAILED|wget: )",
    r": \*\*\* (?!\[)",
    r"Exec format error|hidden symbol .* isn't defined",
    r"^fatal: (remote error|clone of|Remote branch|couldn't find|unable to access|repository|not a git)",
    r"^Memory access fault by GPU",
    r"^\s*Package '[^']+', required by |error adding symbols: |is not recognized as an internal or external command",
    r"^ ?(#\d+ +)?0x[0-9a-f]{8,} .*\b(llvm|clang|cc1as?_main)(::|\b)",
    r"^[\w.-]+ \S+ requires [^,]+, (but you('ll)? have |which is not installed)",
    r"undefined symbol",
    r"Undefined symbol",
    r"cannot find -l|\bld: cannot find /",
    r"recompile with -f",
    r": No such file",
    r"Killed\b",
    r"^Segmentation fault\b",
    r"^\w+ fatal\s*:",
    r"LNK\d{4}",
    r"No rule to make target",
    r"^\s*(/bin/)?(ba)?sh: .*not found$|: command not found$|^\S+\.sh: \d+: \S+: not found$",
    r"[Ss]yntax error:? |^patch: \*{4} |^terminate called after",
    r"^ld: (?!warning)|^Tensile(Lite)?::(FATAL|ERROR)",
    r"^Could not find a (package configuration file provided by|configuration file for package) \"",
)
_ERROR = Sieve(tuple(map(re.compile, _ERRORS)))

_MESSAGE = re.compile(r"CMake (Error|Warning|Deprecation)|Call Stack |-- ")
"""Lines that begin what CMake prints."""
_PROGRESS = re.compile(
    r"^\[ *\d+(/\d+|%)\] |^\[ *\d+%\] Built|^-- \S|^(ninja|g?make(\[\d+\])?|cmake|Scanning dependencies of target)\b"
    r"|^(running|copying|creating|writing|building|compiling|linking) \S"
    r"|^(Collecting|Building|Successfully|Processing) \S"
    r"|^\S*\b(gcc|g\+\+|cc|c\+\+|clang(\+\+)?|nvcc|hipcc|cl|ld)(-\d+)?(\.exe)?:? |^(Cloning into|Submodule) "
)
"""Lines of a build that goes on."""
_BUILD = re.compile(_PROGRESS.pattern + r"|[:)] ?(fatal )?(warning|error)( \w+)?: ")
"""Lines that only a build, or a tool of it, prints."""

_FRAME = re.compile(
    r"subprocess-exited-with-error|^error: builder for |^note: This error originates|^error: command "
    r"|^subprocess\.CalledProcessError|^error: (metadata-generation-failed|legacy-install-failure|failed-wheel-build)"
    r"|^g?make(\[\d+\])?: \*\*\* \[|ninja: build stopped"
    r"|^(error: )?(The build backend returned an error|Failed to (download and )?build )"
    r"|^\d+ errors? found in build log",
    re.IGNORECASE,
)
"""Lines that frame an error but are not errors themselves."""

_WARNING = re.compile(r"(?<![\w./\\-])(warning|WARNING)\b(?![./\\])|Warning\b(?![./\\])|\bwarnings\.warn\b")
"""The word before which a line is an error, and after which it is a warning that quotes one."""

_OBJECTS = ("header", "symbol", "package", "module", "program", "path", "owner", "name", "library", "part")
"""The groups of a pattern that hold the name of something that a part has."""
_MOST_ERRORS = 24  # of a step that are read by their form


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause that a line of a log names."""

    failure: BuildFailure
    """The row of the table."""
    line: LogLine
    """The line."""
    parts: tuple[NamedPart, ...] = field(default=(), repr=False)
    """The parts that it may name."""
    known: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The values that the table of HIP's names has for the name in the line."""
    note: str = ""
    """What the compiler adds to the line, with the place of it; empty for nothing."""

    @property
    def title(self) -> str:
        """The title of the row, with the values that the line names."""
        return filled(self.failure.title, self._named)

    @property
    def reason(self) -> str:
        """The cause in a sentence, with the values that the line names."""
        return filled(self.failure.cause, self._named)

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """The fixes, with the values that the line names."""
        named = self._named
        return tuple(Remedy(filled(way.when, named), filled(way.do, named)) for way in self.failure.remedies)

    @property
    def _named(self) -> dict[str, str]:
        """The values of the groups in the line, of the part that one belongs to, and of the table of HIP's names."""
        named = values(self.failure.patterns, self.line.text)
        part = _part(self.parts, named)
        symbol = {"symbol": readable(named["symbol"])} if "symbol" in named else {}
        return {**({"part": part.name, "install": part.install} if part else {}), **named, **symbol, **self.known}

    def settled(self, table: BuildFailureTable, here: Version | None) -> "Cause":
        """Return the cause by the standing of its name in a release of ROCm; None for an unknown release."""
        known = standing_of(self.failure, self.line.text, table, here) if self.failure.standings else None
        return replace(self, failure=self.failure.known_as(known[0]), known=known[1]) if known else self

    def finding(self) -> Finding:
        """Return the cause as a finding."""
        doubt = "" if self.failure.basis.confirmed else " (not confirmed)"
        note = f" The compiler adds: {self.note}." if self.note else ""
        return Finding(
            code=self.failure.code,
            severity=Severity.WARNING if self.failure.kind is FailureKind.WARNING else Severity.ERROR,
            subject=self.failure.name,
            message=f"{self.title.rstrip('.')}. {self.reason}{note}{doubt}",
            evidence=f"line {self.line.number}: {self.line.text.strip()}",
            source=self.failure.basis.source,
            fix="; or ".join(map(str, self.remedies)),
        )


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The findings of a build's log."""

    failed: bool
    """Whether a step failed and its failure was not ignored."""
    step: LogLine | None
    """The line of the first step that failed, such as ninja's ``FAILED:``; None if none is marked."""
    error: LogLine | None
    """The first error of that step; None if the log has none."""
    cause: Cause | None
    """Why it failed; None if no row of the table matches."""
    others: tuple[Cause, ...]
    """Other causes found in the log, each once."""
    place: NamedPlace | None = None
    """The place in a source that the error names; None without one."""
    is_build: bool = False
    """Whether any line is one that only a build prints."""

    @property
    def own_cause(self) -> Cause | None:
        """The cause by a row of its own, a fault of toolchain or machine; None if a message's form alone gives it."""
        is_form = self.cause and self.cause.failure.kind in (FailureKind.MESSAGE, FailureKind.FRAME)
        return None if is_form else self.cause


def _part(parts: Sequence[NamedPart], named: Mapping[str, str]) -> NamedPart | None:
    """Return the part that a header, library, symbol … of a message belongs to; None for an unknown one."""
    objects = (named[kind] for kind in _OBJECTS if kind in named)
    every = ((part, pattern.fullmatch(one)) for one in objects for part in parts for pattern in part.names)
    return next((part for part, found in every if found), None)


def diagnose(lines: Iterable[str], table: BuildFailureTable, of: str = "") -> Diagnosis:
    """Return the diagnosis of a log, which is read once and not kept.

    Args:
        lines: The lines of the log.
        table: The known causes.
        of: The project, such as ``pytorch``: causes of other packages do not count, and those of any extension only
            if there is no other. Empty if that is not known.
    """
    reader = _LogReader(table, [_Causes(*rows) for rows in _rows_of(table, of)])
    for line in clean(lines):
        reader.read(line)
    reader.end()
    found = [reader.diagnosis(causes) for causes in reader.groups]
    return next((one for one in found if one.cause), found[-1])


class _Rows:
    """Rows of the table, which name the causes of lines."""

    def __init__(self, group: Sequence[BuildFailure], table: BuildFailureTable, *, messages: bool) -> None:
        """Take the rows about messages of a group, or its others."""
        own = [row for row in group if (row.kind is FailureKind.MESSAGE) == messages]
        self._failures = sorted(own, key=lambda row: (row.kind is FailureKind.FRAME, row.weak))
        self._table = table
        every = [(row, one) for row, owner in enumerate(self._failures) for one in owner.patterns]
        rows = [(row, one, plain) for row, one in every for plain in literals(one.pattern) or ("",)]
        uses = Counter(part for _, _, plain in rows for part in _parts(plain))
        self._rows: dict[str, list[tuple[int, re.Pattern[str], str]]] = {}
        """The patterns with their rows and one of their literals, by its part that the fewest others have."""
        for row, pattern, plain in rows:
            rarest = min(_parts(plain), key=lambda part: uses[part], default="")
            self._rows.setdefault(rarest, []).append((row, pattern, plain))

    def find(self, lines: Sequence[LogLine], around: Callable[[], Sequence[LogLine]]) -> Cause | None:
        """Return the cause by the first row that matches lines as one, with the line of them that decides.

        Args:
            lines: A line, or the lines of a folded sentence.
            around: Returns the lines around them.
        """
        whole = lines[0] if len(lines) == 1 else LogLine(lines[0].number, _joined(lines))
        text, low = whole.text, whole.text.lower()
        parts = self._rows.keys() & {"", *_parts(low)}
        some = [one for part in parts for one in self._rows[part]]
        for row in sorted({row for row, pattern, plain in some if plain in low and pattern.search(text)}):
            failure = self._failures[row]
            if _fits(failure, [whole, *around()]) and self._is_known(failure, text):
                decisive = next((one for one in lines if Sieve(failure.patterns)(one.text)), whole)
                return Cause(failure, decisive, self._table.parts, note=note_after(decisive, around()))
        return None

    def _is_known(self, failure: BuildFailure, text: str) -> bool:
        """Return whether the name in a line has a standing that a row asks for."""
        known = standing_of(failure, text, self._table, None) if failure.standing else None
        return failure.standing is None or (known is not None and known[0] in failure.standings)


@lru_cache(maxsize=8)
def _rows_of(table: BuildFailureTable, of: str) -> tuple[tuple[_Rows, _Rows], ...]:
    """Return the groups of rows that count for a build, each as those about causes and those about messages.

    To prepare them takes longer than to read a short log, so that they serve all logs of a process.
    """
    every = table.failures
    groups = [[row for row in every if not names.isdisjoint(row.of)] for names in ({of}, {of, _ANY})] if of else [every]
    return tuple((_Rows(group, table, messages=False), _Rows(group, table, messages=True)) for group in groups)


class _Causes:
    """The causes that the lines of a log name, each with its first line."""

    def __init__(self, rows: _Rows, messages: _Rows) -> None:
        self._rows, self._messages = rows, messages
        self.all: dict[str, Cause] = {}
        """Of the whole log, by the names of the rows."""
        self.recent: dict[str, Cause] = {}
        """Of the lines after the last success."""

    def look(self, lines: Sequence[LogLine], around: Callable[[], Sequence[LogLine]]) -> None:
        """Note the cause of lines; see `_Rows.find`."""
        if cause := self._rows.find(lines, around):
            for found in (self.all, self.recent):
                found.setdefault(cause.failure.name, cause)

    def message(self, errors: Iterable[tuple[LogLine, Sequence[LogLine]]]) -> Cause | None:
        """Return the cause that the first error names by its form.

        An error of a script may lead to the next one, and so on; one of a compiler leads to others in the same source,
        which are none.

        Args:
            errors: The errors of a step in their order, each with the lines around it.
        """
        weak: Cause | None = None
        for error, around in errors:
            ways = ([error], [_unfolded(error, around)])
            cause = next(filter(None, (self._messages.find(lines, lambda: ()) for lines in ways)), None)
            cause = cause and replace(cause, note=note_after(error, around))
            if cause and cause.failure.weak:
                weak = weak or cause
            elif cause or named_place(error.text):
                return cause or weak
        return weak


class _LogReader:
    """Reads a log line by line; of its lines, only those around the one that is looked at are kept."""

    def __init__(self, table: BuildFailureTable, groups: Sequence[_Causes]) -> None:
        self.groups = groups
        self._table = table
        self._marks = marks = table.marks
        self._release = ReleaseInLog(marks.release)
        self._success, self._failed, self._broken = map(Sieve, (marks.success, marks.failed, marks.error))
        self._noise, self._begin, self._end = map(Sieve, (marks.noise, marks.probe_begin, marks.probe_end))
        self._behind = deque[LogLine](maxlen=marks.window + _FOLDED + 2)
        self._ahead = deque[LogLine]()
        self._cmake = -_REPORT
        self._of_build = False
        self._start()

    def _start(self) -> None:
        """Forget the failures of earlier lines: they were mended, or did not matter."""
        self._fails = self._probing = self._within = self._went_on = False
        self._step: LogLine | None = None
        self._errors: list[tuple[LogLine, Sequence[LogLine]]] = []
        self._earlier: list[tuple[LogLine, Sequence[LogLine]]] = []
        self._place: NamedPlace | None = None
        self._traced: NamedPlace | None = None
        self._behind.clear()
        self._blanks = 0
        self._sentence: list[tuple[LogLine, bool]] = []
        for causes in self.groups:
            causes.recent = {}

    def read(self, line: LogLine) -> None:
        """Read the next line of the log."""
        self._ahead.append(line)
        if len(self._ahead) > self._marks.window:
            self._take(self._ahead.popleft())

    def end(self) -> None:
        """Read the lines that are left, at the end of the log."""
        while self._ahead:
            self._take(self._ahead.popleft())
        self._fold(LogLine(0, ""), kept=False)

    def diagnosis(self, causes: _Causes) -> Diagnosis:
        """Return the diagnosis by some causes."""
        found = list(causes.recent.values())
        if self._fails and all(cause.failure.kind is FailureKind.WARNING for cause in found):
            found = list(causes.all.values())
        fails = self._fails or not self._went_on
        errors = self._errors or self._earlier
        chosen = _chosen(found, causes.message(errors) if fails else None, failed=self._fails)
        if chosen is None and not self._fails:
            return Diagnosis(False, None, None, None, (), is_build=self._of_build)
        others = (cause for cause in found if cause is not chosen and cause.failure.kind is FailureKind.ERROR)
        error = errors[0][0] if errors else None
        main, *rest = (one and one.settled(self._table, self._release.at(one.line)) for one in (chosen, *others))
        return Diagnosis(True, self._step, error, main, tuple(filter(None, rest)), self._place, self._of_build)

    def _take(self, line: LogLine) -> None:
        """Read a line whose neighbors are known."""
        text = line.text
        self._release.read(line)
        self._of_build = self._of_build or _BUILD.search(text) is not None
        self._went_on = self._went_on or _PROGRESS.search(text) is not None
        if self._success(text) and not (text.startswith("-- Build files") and line.number - self._cmake <= _REPORT):
            self._start()
            return
        kept = self._is_kept(text)
        self._fold(line, kept=kept)
        self._behind.append(line)
        if text.startswith("CMake Error"):
            self._cmake = line.number
        self._fails = self._fails or self._failed(text) or (kept and self._broken(text))
        self._note_step(line)
        self._traced = traced(text) or self._traced
        if kept:
            self._note_error(line)
            self._look([line])
            if self._ahead and self._ahead[0].text.lstrip().startswith(("'", "\u2018")) and is_error(text):
                self._look([line, self._ahead[0]])  # what prints for a terminal folds an error before the name in it

    def _is_kept(self, text: str) -> bool:
        """Return whether a line may name a cause: it is neither noise nor output of a compiler probe."""
        if self._begin(text):
            self._probing = True
        elif self._probing and self._end(text):
            self._probing = False
        return not self._probing and not self._noise(text)

    def _note_step(self, line: LogLine) -> None:
        """Note the first failed step: the one that Ninja marks, else the first frame of an error."""
        marked = self._step is not None and self._step.text.startswith(_FAILED)
        if line.text.startswith(_FAILED) and not marked and not line.text.startswith(_OF_BAZEL):
            self._step = line
            self._earlier, self._errors, self._place = self._errors, [], None  # a compiler's errors are after the mark
        elif self._step is None and _STEP.match(line.text):
            self._step = line

    def _note_error(self, line: LogLine) -> None:
        before = self._behind[-2].text if len(self._behind) > 1 else ""
        if len(self._errors) < _MOST_ERRORS and is_error(line.text) and not before.startswith("CMake "):
            self._went_on = False
            if not self._errors:
                self._place = named_place(line.text) or self._traced
            self._errors.append((line, self._near(line, line)))

    def _near(self, first: LogLine, last: LogLine) -> list[LogLine]:
        """Return the lines near some lines."""
        start, end = first.number - self._marks.window, last.number + self._marks.window
        return [one for one in chain(self._behind, self._ahead) if start <= one.number <= end]

    def _look(self, lines: Sequence[LogLine]) -> None:
        for causes in self.groups:
            causes.look(lines, lambda: self._near(lines[0], lines[-1]))

    def _fold(self, line: LogLine, *, kept: bool) -> None:
        """Look at a sentence of CMake as one line when it ends.

        CMake folds its messages at 77 columns, so where a line ends depends on how long the paths in it are. Two blank
        lines end a message.

        Args:
            line: The next line.
            kept: Whether it may name a cause.
        """
        goes_on = not kept and _PROGRESS.match(line.text) is not None  # excerpts often lack the blank lines
        is_head = goes_on or _MESSAGE.match(line.text) is not None or _STEP.match(line.text) is not None
        self._blanks = 0 if line.text.strip() else self._blanks + 1
        if self._blanks == 1 and self._sentence and self._sentence[-1][0].text.endswith(":"):
            return
        if self._within and not self._blanks and not is_head:
            self._sentence.append((line, kept))
            return
        lines = [one for one, _ in self._sentence]
        if 0 < len(lines) <= _FOLDED and all(kept for _, kept in self._sentence):
            self._errors = [
                (LogLine(error.number, f"{error.text} {_joined(lines)}"), near)
                if error.number == lines[0].number - 1
                else (error, near)
                for error, near in self._errors
            ]
            if len(lines) > 1:
                self._look(lines)
        self._sentence = []
        self._within = line.text.startswith("CMake Error") if is_head else self._within and self._blanks < _BLANKS


def _parts(text: str) -> Iterator[str]:
    """Yield what stands in three places of a text that follow each other, from its start to its end."""
    return map("".join, zip(text, text[1:], text[2:], strict=False))


def is_error(text: str) -> bool:
    """Return whether a line is an error; words of an error in a warning are none."""
    found = _ERROR.search(text)
    return found is not None and not _FRAME.search(text) and not _WARNING.search(text, 0, found.start())


def _unfolded(error: LogLine, around: Iterable[LogLine]) -> LogLine:
    """Return an error with the next line: clang folds its messages at the width of a terminal."""
    rest = next((one.text for one in around if one.number == error.number + 1 and not named_place(one.text)), "")
    return LogLine(error.number, f"{error.text} {rest.strip()}")


def _joined(lines: Sequence[LogLine]) -> str:
    return " ".join(one.text.strip() for one in lines)


def _chosen(causes: Sequence[Cause], message: Cause | None, *, failed: bool) -> Cause | None:
    """Return the main cause.

    The first that is neither a frame nor a warning; else what the first error names by its form, or a weak cause on it
    or before it; else the first frame or warning.
    """
    errors = [cause for cause in causes if cause.failure.kind is FailureKind.ERROR]
    if strong := [cause for cause in errors if not cause.failure.weak]:
        return strong[0]
    if message and not any(_precedes(cause, message) for cause in errors):
        return message
    others = [kind for kind in (FailureKind.FRAME, FailureKind.WARNING) if failed]
    framed = [cause for kind in others for cause in causes if cause.failure.kind is kind]
    return next(iter(errors or framed), None)


def _precedes(cause: Cause, message: Cause) -> bool:
    """Return whether a weak cause is on the line of a message or before it; one of CMake goes over several lines."""
    lines = _FOLDED if message.line.text.startswith("CMake Error") else 0
    return message.failure.weak or cause.line.number <= message.line.number + lines


def _fits(failure: BuildFailure, near: Sequence[LogLine]) -> bool:
    """Return whether the context of a line matches the cause's requirement."""
    if failure.near and not any(pattern.search(one.text) for one in near for pattern in failure.near):
        return False
    return not any(pattern.search(one.text) for one in near for pattern in failure.not_near)
