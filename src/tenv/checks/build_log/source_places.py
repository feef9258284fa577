"""The places in sources that lines of a log name."""

import re
from collections.abc import Iterable

from tenv.checks.build_log.log_lines import LogLine
from tenv.core.dataclass import dataclass

_PLACE = re.compile(
    r"^(?P<file>(?:[A-Za-z]:)?(?=[^:()]*[./\\])[^:()]+)(?::(?P<line>\d{1,9})[:.]|\((?P<at>\d{1,9})(?:,\d+)?\) ?: )"
    r"|^CMake Error at (?P<script>(?:[A-Z]:)?[^:]+):(?P<by>\d{1,9}) "
)
"""The file and the line at which a compiler or CMake reports an error."""
_NOTE = re.compile(
    r"^(?P<place>(?P<file>\S+?):\d+):\d+: note: "
    r"(?P<said>(?:candidate .*(?:not viable|ignored|by name lookup)|previous|conflicting|forward decl"
    r"|.* (?:declared|defined|required|first seen)\b).*)"
)
"""A note of a compiler that tells what an error is about."""
_FRAME_OF_PYTHON = re.compile(r"^\s*File \"(?P<file>[^\"]+)\", line (?P<line>\d{1,9})\b")


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A line of a source, as an error names it."""

    file: str
    """The file."""
    line: int
    """The number of the line, from 1."""

    def __str__(self) -> str:
        """Return the place as text."""
        return f"{self.file}, line {self.line}"


def named_place(text: str) -> NamedPlace | None:
    """Return the place that an error names; None for an error without one."""
    found = _PLACE.match(text)
    if found is None:
        return None
    return NamedPlace(found["file"] or found["script"], int(found["line"] or found["at"] or found["by"]))


def traced(text: str) -> NamedPlace | None:
    """Return the place that a line of Python's traceback names; None for another line."""
    frame = _FRAME_OF_PYTHON.match(text)
    return NamedPlace(frame["file"], int(frame["line"])) if frame else None


def note_after(error: LogLine, near: Iterable[LogLine]) -> str:
    """Return the first note of a compiler below an error, of another file than the error if there is one; else "".

    Args:
        error: The line of the error.
        near: The lines around it.
    """
    first = ""
    for line in near:
        if line.number <= error.number:
            continue
        if " error: " in line.text:
            break
        if found := _NOTE.match(line.text):
            told = f"{found['place']}: {found['said']}"
            if not error.text.startswith(found["file"]):
                return told
            first = first or told
    return first
