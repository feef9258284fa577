"""Why builds of PyTorch and its extensions fail: the lines in logs, the cause, and the fix."""

import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column, OptionalText
from tenv.facts.hip_names import NameStanding, NameTable
from tenv.facts.interface import Basis
from tenv.facts.table_files import Data

_SLOT = re.compile(r"\{(?P<name>[a-z]+)\|(?P<other>[^{}|]+)\}")


class FailureKind(StrEnum):
    """The meaning of a matched line."""

    ERROR = "error"
    """It ends a build."""
    WARNING = "warning"
    """It ends none; it reports an omitted part."""
    MESSAGE = "message"
    """It is the first error of a build, read by its form alone; any other cause on it or before it takes precedence."""
    FRAME = "frame"
    """It only introduces what another program printed; any other cause takes precedence."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """The fix of a cause."""

    when: OptionalText
    """The situation; empty for any."""
    do: str
    """A command or an edit; it may have slots, as in `filled`."""

    def __str__(self) -> str:
        """Return the fix as text."""
        return f"{self.when}: {self.do}" if self.when else self.do


@dataclass(frozen=True, slots=True)
class FailureCase:
    """A cause by the standing of the name in a line."""

    standing: NameStanding
    """The standing."""
    name: Annotated[str, Column("id")]
    """The name of the cause."""
    title: str
    """A short title."""
    cause: str
    """The cause in a sentence."""
    remedies: Annotated[tuple[Remedy, ...], Column("fix")]
    """The fixes."""


@dataclass(frozen=True, slots=True)
class BuildFailure:
    """A cause of failed builds."""

    name: Annotated[str, Column("id")]
    """Its name, ``disk-full``."""
    code: str
    """The code of the finding that it is."""
    title: str
    """A short title."""
    cause: str
    """The cause in a sentence."""
    of: tuple[str, ...]
    """The kinds of builds."""
    phases: Annotated[tuple[str, ...], Column("phase")]
    """The phases of a build that print its line."""
    patterns: tuple[re.Pattern[str], ...]
    """A line that matches one of these is its line."""
    near: tuple[re.Pattern[str], ...]
    """One of these must match near that line; empty for none."""
    not_near: tuple[re.Pattern[str], ...]
    """None of these may match near it."""
    weak: bool
    """Whether any other cause takes precedence, since its line only frames one."""
    kind: Annotated[FailureKind, Column(default=FailureKind.ERROR)]
    """The meaning of its line."""
    versions: OptionalText
    """The affected releases."""
    needs: Annotated[str, Column("with", default="")]
    """A further condition, or an empty string."""
    remedies: Annotated[tuple[Remedy, ...], Column("fix")]
    """The fixes."""
    standing: NameStanding | None
    """The standing of the name in the line where no case holds; None for a row that does not ask."""
    cases: Annotated[tuple[FailureCase, ...], Column("case")]
    """The causes by other standings."""
    basis: Basis
    """How certain this is."""

    @property
    def standings(self) -> frozenset[NameStanding]:
        """The standings of a name that the row holds for; empty if it does not ask."""
        every = {self.standing, *(case.standing for case in self.cases)}
        return frozenset(one for one in every if one)

    @property
    def every(self) -> "tuple[BuildFailure, ...]":
        """The row and its cases, each as a cause."""
        return (self, *(self.known_as(case.standing) for case in self.cases))

    def known_as(self, standing: NameStanding | None) -> "BuildFailure":
        """Return the row as the cause for the standing of a name."""
        case = next((one for one in self.cases if one.standing is standing), None)
        if case is None:
            return self
        return replace(self, name=case.name, title=case.title, cause=case.cause, remedies=case.remedies, cases=())

    def described(self) -> str:
        """Return the title, the cause and the fixes in Markdown, without the values that a log fills in."""
        doubt = "" if self.basis.confirmed else " Not confirmed."
        ways = "".join(f"- {way}\n" for way in self.remedies)
        title = filled(self.title, {})
        return filled(f"{title[0].upper()}{title[1:]}. {self.cause}{doubt}\n\n{ways}", {})


@dataclass(frozen=True, slots=True)
class NamedPart:
    """A part of ROCm, CUDA, torch or the system that the messages of a build name."""

    name: str
    """Its name, ``hipBLAS``."""
    names: tuple[re.Pattern[str], ...]
    """The headers, libraries, CMake packages, symbols, programs and Python modules of it, as whole names."""
    install: str
    """The packages that bring it, or the step that makes it."""
    basis: Basis


@dataclass(frozen=True, slots=True)
class LogMarks:
    """The structure of a build's log."""

    window: int
    """How many lines before and after a line are near it."""
    success: tuple[re.Pattern[str], ...]
    """A line that makes earlier lines irrelevant."""
    failed: tuple[re.Pattern[str], ...]
    """A line that only a failed build has."""
    error: tuple[re.Pattern[str], ...]
    """A line outside noise and probes that is an error, whether or not a frame of a build is around it."""
    noise: tuple[re.Pattern[str], ...]
    """Lines that never show a cause."""
    probe_begin: tuple[re.Pattern[str], ...]
    """The start of a compiler probe's output, which is unrelated to the build."""
    probe_end: tuple[re.Pattern[str], ...]
    """The end of that output."""
    release: tuple[re.Pattern[str], ...]
    """A line that names the release of ROCm in use."""


@dataclass(frozen=True, slots=True)
class BuildFailureTable:
    """Every row of the table."""

    failures: tuple[BuildFailure, ...]
    """One row per cause, in the order of matching."""
    parts: tuple[NamedPart, ...]
    """The parts behind the names of a message, in the order of matching."""
    marks: LogMarks
    """The structure of a log."""
    hip_names: Callable[[], NameTable] = field(repr=False)
    """Returns the table of HIP's names, which is read when an error has a name of them."""

    def __hash__(self) -> int:
        """Hash the number of causes: each log asks what was prepared for its table, and a process has few tables."""
        return len(self.failures)


def filled(text: str, named: Mapping[str, str]) -> str:
    """Return a text with the values of its slots.

    Args:
        text: A text of the table; a slot is ``{name|other}``.
        named: The values by name; a slot without a value becomes its other words.
    """
    return _SLOT.sub(lambda slot: named.get(slot["name"], slot["other"]), text)


def read(data: Data, hip_names: Callable[[], NameTable]) -> BuildFailureTable:
    """Build the table from its rows; raises FactsError if one is invalid."""
    failures, parts = data.read("failure", BuildFailure), data.read("part", NamedPart)
    return BuildFailureTable(failures, parts, data.tables["log"].table.read(LogMarks), hip_names)
