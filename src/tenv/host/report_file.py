"""Read a host report from a file: one that tenv wrote, or a pasted text."""

import json
import re
import sys
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tenv.core.dataclass import dataclass
from tenv.core.errors import HostReportError
from tenv.core.file_content import read_given
from tenv.host.report_json import from_json, unwrap

if TYPE_CHECKING:
    from tenv.host.report import HostReport

__all__ = ["Given", "is_json", "parse", "read_file"]

_JSON = re.compile(r"\s*(\{|\[\s*([\[{\]\"]|$)|null\b|true\b|false\b|-?\d+(\.\d+)?\s*$)")


@dataclass(frozen=True, slots=True)
class Given:
    """A host report from a file.

    Attributes:
        report: The report.
        pasted: All values of a pasted text as JSON values; empty for a report that was not pasted.
    """

    report: "HostReport"
    pasted: dict[str, Any] = field(default_factory=dict)


def is_json(text: str) -> bool:
    """Return whether a text is intended as JSON; the prompt ``[root@node ~]$`` is not."""
    return _JSON.match(text[:4096]) is not None


def parse(text: str, source: str) -> Given:
    """Return the report in a text; raises HostReportError if there is none."""
    if not is_json(text):
        from tenv.host.pasted.reader import read, to_json, to_report  # late: 15 ms, and most reports are JSON

        pasted = read(text, source)
        return Given(to_report(pasted), to_json(pasted))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        hint = "`tenv host --json > FILE` writes one"
        raise HostReportError(f"{source}: not JSON: {error}", hint=hint) from error
    pasted_before = unwrap(data).get("pasted")
    return Given(from_json(data, source), pasted_before if isinstance(pasted_before, dict) else {})


def read_file(name: str, stdin: TextIO | None = None) -> Given:
    """Return the report in a file.

    Args:
        name: The file, ``-`` for standard input.
        stdin: The replacement of standard input.

    Raises:
        HostReportError: It can't be read as a report.
    """
    from tenv.host.pasted.clean_text import decode  # late: as above

    source = "standard input" if name == "-" else name
    try:
        text = _standard_input(stdin or sys.stdin) if name == "-" else decode(read_given(Path(name)))
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        hint = "`tenv host --json > FILE` writes one"
        raise HostReportError(f"{source}: can't be read: {reason}", hint=hint) from error
    return parse(text, source)


def _standard_input(stream: TextIO) -> str:
    from tenv.host.pasted.clean_text import decode  # late: as above

    raw = getattr(stream, "buffer", None)
    return decode(raw.read()) if raw is not None else stream.read()
