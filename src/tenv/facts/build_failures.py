"""Why builds of PyTorch and its extensions fail: the lines that say so, the cause, and what mends it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tenv.core.toml_reader import Table
from tenv.facts.interface import Basis, number
from tenv.facts.table_files import Data

__all__ = ["BuildFailure", "BuildFailureTable", "FailureKind", "LogMarks", "Remedy", "read"]


class FailureKind(StrEnum):
    """What a line that a row matches means."""

    ERROR = "error"
    """It ends a build."""
    WARNING = "warning"
    """It ends none; it says that a part was left out."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What mends a cause.

    Attributes:
        when: In which situation; empty for any.
        do: A command or an edit.
    """

    when: str
    do: str

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.when}: {self.do}" if self.when else self.do


@dataclass(frozen=True, slots=True)
class BuildFailure:
    """A cause of failed builds.

    Attributes:
        name: Its name, ``disk-full``.
        code: The code of the finding that it is.
        title: It in a few words.
        cause: It in a sentence.
        of: What was being built.
        phases: Where its line shows up.
        patterns: A line that one of these is found in is its line.
        near: One of these must stand near that line; empty for none.
        not_near: None of these may stand near it.
        weak: Whether it gives way to any other cause: it names what is only a frame around one.
        kind: What its line means.
        versions: The releases that it is about.
        needs: What else must be there for it to happen, or an empty string.
        remedies: What mends it.
        basis: How well this is known.
    """

    name: str
    code: str
    title: str
    cause: str
    of: tuple[str, ...]
    phases: tuple[str, ...]
    patterns: tuple[re.Pattern[str], ...]
    near: tuple[re.Pattern[str], ...]
    not_near: tuple[re.Pattern[str], ...]
    weak: bool
    kind: FailureKind
    versions: str
    needs: str
    remedies: tuple[Remedy, ...]
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "BuildFailure":
        """Read one row of the data file; raises FactsError with the row's path."""
        kind = row.text("kind", "error")
        if kind not in list(FailureKind):
            raise row.fail("kind", f"expected {' or '.join(FailureKind)}, got `{kind}`")
        return cls(
            name=row.required_text("id"),
            code=row.required_text("code"),
            title=row.required_text("title"),
            cause=row.required_text("cause"),
            of=row.strings("of"),
            phases=row.strings("phase"),
            patterns=_patterns(row, "patterns"),
            near=_patterns(row, "near"),
            not_near=_patterns(row, "not_near"),
            weak=row.flag("weak"),
            kind=FailureKind(kind),
            versions=row.text("versions"),
            needs=row.text("with"),
            remedies=tuple(Remedy(way.text("when"), way.required_text("do")) for way in row.rows("fix")),
            basis=Basis.read(row, sources),
        )


@dataclass(frozen=True, slots=True)
class LogMarks:
    """What structures a build's log.

    Attributes:
        window: How many lines before and after a line are near it.
        success: A line after which what came before did not matter.
        failed: A line that only a build that failed has.
        noise: Lines that name no cause.
        probe_begin: Where the output of a compiler probe begins, which says nothing of the build.
        probe_end: Where it ends.
    """

    window: int
    success: tuple[re.Pattern[str], ...]
    failed: tuple[re.Pattern[str], ...]
    noise: tuple[re.Pattern[str], ...]
    probe_begin: tuple[re.Pattern[str], ...]
    probe_end: tuple[re.Pattern[str], ...]

    @classmethod
    def read(cls, row: Table) -> "LogMarks":
        """Read the table; raises FactsError with its path."""
        names = ("success", "failed", "noise", "probe_begin", "probe_end")
        return cls(number(row, "window"), *(_patterns(row, name) for name in names))


@dataclass(frozen=True, slots=True)
class BuildFailureTable:
    """Every row of the table.

    Attributes:
        failures: One row per cause, in the order in which they are tried on a line.
        marks: What structures a log.
    """

    failures: tuple[BuildFailure, ...]
    marks: LogMarks


def _patterns(row: Table, key: str) -> tuple[re.Pattern[str], ...]:
    try:
        return tuple(re.compile(text) for text in row.strings(key))
    except re.error as error:
        raise row.fail(key, f"no regular expression: {error}") from error


def read(data: Data) -> BuildFailureTable:
    """Make the table of its rows; raises FactsError when one is damaged."""
    failures = tuple(BuildFailure.read(*row) for row in data.rows("failure"))
    return BuildFailureTable(failures, LogMarks.read(data.table("log")[0]))
