"""The host report as JSON, which ``tenv host --json`` prints and a fleet check reads, and the files of reports.

`to_json` and `from_json` are inverse. Both use the fields of the report; the type of a field decides how its value is
read. A file holds a report of tenv, or a pasted text.
"""

import errno
import json
import re
import sys
from dataclasses import field
from pathlib import Path
from typing import Any, TextIO

from tenv import __version__
from tenv.core.dataclass import dataclass
from tenv.core.errors import HostReportError
from tenv.core.file_content import read_given
from tenv.core.files import MOST
from tenv.core.toml_reader import Table
from tenv.host.field import HostField, host_fields
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind, fact_to_json
from tenv.host.report import HostReport

SCHEMA = 2
"""The number of the form of a report. A change that makes another reading of a value raises it."""

_HINT = "`tenv host --json > FILE` writes one; docs/host.md has the form"

UNREPORTED = Missing.because(ReasonKind.UNREPORTED)
"""The value of a field that a report does not have."""


def to_json(report: HostReport) -> dict[str, Any]:
    """Return the report as JSON values."""
    answers = {name: _write(getattr(report, name), field) for name, field in host_fields().items()}
    return {"schema": SCHEMA, "tenv": __version__, **answers}


def _write(answer: Fact[Any] | Missing, field: HostField[Any]) -> dict[str, Any]:
    return {**fact_to_json(answer, field.write), "kind": str(answer.kind)}


def from_json(data: object, source: str = "the report") -> HostReport:
    """Return the report in JSON values; unknown keys are ignored.

    Args:
        data: The result of `to_json`, or the whole output of ``tenv host --json``.
        source: Where it was read, for messages.

    Raises:
        HostReportError: It is not a report, or has another schema.
    """
    try:
        report = _report_of(data, source)
        known = report.data
        values = {
            name: read_value(known[name], name, field, report) if name in known else UNREPORTED
            for name, field in host_fields().items()
        }
    except HostReportError as error:
        error.hint = error.hint or _HINT
        raise
    return HostReport(**values)


def unwrap(data: object) -> dict[str, Any]:
    """Return the report itself, without the envelope of ``tenv host --json``; empty if it is not an object."""
    inner = data.get("data") if isinstance(data, dict) and "command" in data else data
    return inner if isinstance(inner, dict) else {}


def _report_of(data: object, source: str) -> Table:
    """Return the report itself, without an envelope, after a check of its schema."""
    values = _table(data, source)
    writer = values.data.get("tenv")
    if "command" in values.data and "data" in values.data:
        if values.data["command"] != "host":
            raise HostReportError(f"{source}: the output of `tenv {values.data['command']}`, not of `tenv host`")
        values = values.table("data")
        writer = values.data.get("tenv", writer)
    schema = values.data.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool):
        raise HostReportError(f"{source}: not a host report: it has no `schema`")
    if schema != SCHEMA:
        raise HostReportError(
            f"{source}: tenv {writer or '(of unknown version)'} wrote it in form {schema}; "
            f"this is tenv {__version__}, which reads form {SCHEMA}"
        )
    return values


def _table(data: object, source: str) -> Table:
    if not isinstance(data, dict):
        raise HostReportError(f"{source}: not a host report: it is no JSON object")
    return Table(data, file=source, error=HostReportError)


def read_value(value: object, name: str, field: HostField[Any], report: Table | None = None) -> Fact[Any] | Missing:
    """Return the value of a field from the member of its name; raises HostReportError if it is none.

    Args:
        value: The member's value.
        name: The name.
        field: The field.
        report: The report that it stands in, for messages; None where nobody sees a message.
    """
    answer = (report or _table({name: value}, "")).table(name)
    kind = answer.text("kind") or None
    if "missing" in answer.data:
        return Missing(answer.text("missing"), ReasonKind.read(kind))
    for key in ("value", "origin"):
        if answer.data.get(key) is None:
            raise answer.fail(key, "is required")
    return Fact(field.read(answer, "value"), answer.text("origin"), OriginKind.read(kind))


_LOOKS_LIKE_JSON = re.compile(r"\s*(\{|\[\s*([\[{\]\"]|$)|null\b|true\b|false\b|-?\d+(\.\d+)?\s*$)")


@dataclass(frozen=True, slots=True)
class Given:
    """A host report from a file."""

    report: HostReport
    """The report."""
    pasted: dict[str, Any] = field(default_factory=dict)
    """All values of a pasted text as JSON values; empty for a report that was not pasted."""


def is_json(text: str) -> bool:
    """Return whether a text is intended as JSON; the prompt ``[root@node ~]$`` is not."""
    return _LOOKS_LIKE_JSON.match(text[:4096]) is not None


def parse(text: str, source: str) -> Given:
    """Return the report in a text, the JSON of amd-smi among them; raises HostReportError if there is none."""
    if not is_json(text):
        return _pasted(text, source)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        hint = "`tenv host --json > FILE` writes one"
        raise HostReportError(f"{source}: not JSON: {error}", hint=hint) from error
    if isinstance(data, list) or (isinstance(data, dict) and "gpu_data" in data):
        from tenv.host.amd import parse_amd_smi  # late: for one tool's JSON

        if parse_amd_smi(text):
            return _pasted(text, source)
    pasted_before = unwrap(data).get("pasted")
    return Given(from_json(data, source), pasted_before if isinstance(pasted_before, dict) else {})


def _pasted(text: str, source: str) -> Given:
    from tenv.host.pasted.reader import read, to_json, to_report  # late: 15 ms, and most reports are JSON

    pasted = read(text, source)
    return Given(to_report(pasted), to_json(pasted))


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
        text = standard_input(stdin) if name == "-" else decode(read_given(Path(name)))
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        hint = "`tenv host --json > FILE` writes one"
        raise HostReportError(f"{source}: can't be read: {reason}", hint=hint) from error
    return parse(text, source)


def standard_input(stream: TextIO | None = None, most: int = MOST) -> str:
    """Return the text of standard input in any of the encodings of a report.

    Args:
        stream: The replacement of standard input.
        most: The maximum number of bytes.

    Raises:
        OSError: It is closed or longer; `strerror` has the reason.
    """
    from tenv.host.pasted.clean_text import decode  # late: as above

    stream = stream or sys.stdin
    if stream is None:
        raise OSError(errno.EBADF, "standard input is closed")
    data = getattr(stream, "buffer", stream).read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, "is too large")
    return data if isinstance(data, str) else decode(data)
