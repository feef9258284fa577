"""Explain why a build failed, from its log."""

import codecs
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tenv.checks.build_log.diagnose import Cause, Diagnosis, diagnose
from tenv.checks.build_log.log_lines import LogLine
from tenv.checks.rules.interface import Finding
from tenv.core.dataclass import dataclass
from tenv.core.errors import UsageError
from tenv.core.file_content import given_pieces
from tenv.core.progress import Bytes, Progress
from tenv.host.pasted.clean_text import encoding
from tenv.project.context import Context

_MOST = 1 << 32
"""Maximum bytes of a log; the log of a whole build of PyTorch has some 100 MB."""

_SHOWN = 1 << 20
"""Bytes of a log from which its reading is shown: 1 MiB takes up to a second."""

_LONGEST = 1 << 16
"""How many characters of a line that does not end are kept."""


@dataclass(frozen=True, slots=True)
class ExplainedLog:
    """The diagnosis of a build log."""

    log: str
    """The name of the log."""
    diagnosis: Diagnosis
    """The diagnosis."""
    known: int
    """The number of causes in the table."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The cause as a finding; empty without a cause."""
        return (self.diagnosis.cause.finding(),) if self.diagnosis.cause else ()

    def to_json(self) -> dict[str, Any]:
        """Return the diagnosis as JSON values."""
        found = self.diagnosis
        return {
            "log": self.log,
            "failed": found.failed,
            "step": _line(found.step),
            "error": _line(found.error),
            "place": asdict(found.place) if found.place else None,
            "cause": _cause(found.cause) if found.cause else None,
            "others": [
                {"name": one.failure.name, "code": one.failure.code, "line": one.line.number} for one in found.others
            ],
        }


def explain_log(context: Context, name: str) -> ExplainedLog:
    """Return the diagnosis of a log.

    Args:
        context: The context of the verb, for the tables.
        name: The file; ``-`` for standard input.

    Raises:
        UsageError: The file can't be read.
    """
    shown = "standard input" if name == "-" else name
    table = context.facts().build_failures
    try:
        pieces = iter(lambda: sys.stdin.buffer.read(_SHOWN), b"") if name == "-" else given_pieces(Path(name), _MOST)
        size = None if name == "-" else Bytes(Path(name).stat().st_size)
        lines = _lines(_watched(pieces, context.progress, f"reading {shown}", size))
        return ExplainedLog(shown, diagnose(lines, table), len(table.failures))
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        hint = "`ninja 2>&1 | tee build.log` writes the log of a build"
        raise UsageError(f"{shown}: can't be read: {reason}", hint=hint) from error


def _watched(pieces: Iterable[bytes], progress: Progress, title: str, size: int | None) -> Iterator[bytes]:
    """Yield the pieces of a log; once it is large, show how much of it was read."""
    read = counted = 0
    for piece in pieces:
        if read >= _SHOWN:
            if not counted:
                progress.step(title, size)
            progress.advance(read - counted)
            counted = read
        read += len(piece)
        yield piece


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines of a log, of which one piece is in memory at a time."""
    decoder, rest = None, ""
    for piece in pieces:
        decoder = decoder or codecs.getincrementaldecoder(encoding(piece))("replace")
        *whole, rest = (rest + decoder.decode(piece)).split("\n")
        yield from whole
        if len(rest) > _LONGEST:
            overwritten = rest.rstrip("\r").rpartition("\r")[0]  # by a progress bar
            rest = rest[len(overwritten) :][:_LONGEST]
    yield rest


def _line(line: LogLine | None) -> dict[str, Any] | None:
    return {"line": line.number, "text": line.text} if line else None


def _cause(cause: Cause) -> dict[str, Any]:
    failure = cause.failure
    return {
        "name": failure.name,
        "code": failure.code,
        "title": cause.title,
        "cause": cause.reason,
        "of": list(failure.of),
        "phases": list(failure.phases),
        "versions": failure.versions,
        "needs": failure.needs,
        "confirmed": failure.basis.confirmed,
        "source": failure.basis.source,
        "line": cause.line.number,
        "text": cause.line.text,
        "fix": [{"when": way.when, "do": way.do} for way in cause.remedies],
    }
