"""The host report as JSON, which ``tenv host --json`` prints and a fleet check reads.

`to_json` and `from_json` are inverse. Both use the fields of the report; the conversion of a value is in its
`tenv.host.field.HostField`.
"""

from typing import Any

from tenv import __version__
from tenv.core.errors import HostReportError
from tenv.core.toml_reader import Table
from tenv.host.field import HostField, host_fields
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind, fact_to_json
from tenv.host.report import HostReport

__all__ = ["SCHEMA", "UNREPORTED", "from_json", "read_value", "to_json", "unwrap"]

SCHEMA = 2
"""The number of the form of a report. A change that makes another reading of a value raises it."""

_HINT = "`tenv host --json > FILE` writes one; docs/host.md has the form"

UNREPORTED = Missing.because(ReasonKind.UNREPORTED)
"""What stands for a field that a report does not have."""


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
