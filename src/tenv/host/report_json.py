"""The host report as JSON, which ``tenv host --json`` prints and a fleet check reads.

`to_json` and `from_json` are inverse. Both use the fields of the report; the conversion of a value is in its
`tenv.host.field.HostField`.
"""

from typing import Any

from tenv import __version__
from tenv.core.errors import HostReportError
from tenv.core.json_reader import MOST, Values
from tenv.host.field import HostField
from tenv.host.fields import host_fields
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind, fact_to_json
from tenv.host.report import HostReport

__all__ = ["SCHEMA", "UNREPORTED", "from_json", "read_value", "to_json", "unwrap"]

SCHEMA = 2
"""The number of the form of a report. A change that makes another reading of a value raises it."""

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
    report = _report_of(data, source)
    return HostReport(**{name: _read(report, name, field) for name, field in host_fields().items()})


def unwrap(data: object) -> dict[str, Any]:
    """Return the report itself, without the envelope of ``tenv host --json``; empty if it is not an object."""
    inner = data.get("data") if isinstance(data, dict) and "command" in data else data
    return inner if isinstance(inner, dict) else {}


def _report_of(data: object, source: str) -> Values:
    """Return the report itself, without an envelope, after a check of its schema."""
    values = Values.of(data, source)
    writer = values.data.get("tenv")
    if "command" in values.data and "data" in values.data:
        if values.data["command"] != "host":
            raise HostReportError(f"{source}: the output of `tenv {values.data['command']}`, not of `tenv host`")
        values = Values.of(values.data["data"], source, "data")
        writer = values.data.get("tenv", writer)
    schema = values.data.get("schema")
    hint = "`tenv host --json` writes one"
    if not isinstance(schema, int) or isinstance(schema, bool):
        raise HostReportError(f"{source}: not a host report: it has no `schema`", hint=hint)
    if schema != SCHEMA:
        raise HostReportError(
            f"{source}: tenv {writer or '(of unknown version)'} wrote it in form {schema}; "
            f"this is tenv {__version__}, which reads form {SCHEMA}",
            hint=hint,
        )
    return values


def _read(report: Values, name: str, field: HostField[Any]) -> Fact[Any] | Missing:
    """Return the value of a field of a report; raises HostReportError if it is none."""
    return read_value(report.data[name], name, field, report) if name in report.data else UNREPORTED


def read_value(value: object, name: str, field: HostField[Any], report: Values | None = None) -> Fact[Any] | Missing:
    """Return the value of a field from the member of its name; raises HostReportError if it is none.

    Args:
        value: The member's value.
        name: The name.
        field: The field.
        report: The report that it stands in, for messages; None where nobody sees a message.
    """
    if (plain := _plain(value, field)) is not None:
        return plain
    answer = (report or Values({name: value}, "")).object(name)
    kind = answer.text("kind") if "kind" in answer.data else None
    if "missing" in answer.data:
        return Missing(answer.text("missing"), ReasonKind.read(kind))
    return Fact(field.read(answer, "value"), answer.text("origin"), OriginKind.read(kind))


def _plain(answer: object, field: HostField[Any]) -> Fact[Any] | None:
    """Return the value of a field that is simple and has no fault, as the getters of `Values` would."""
    if type(answer) is not dict or "missing" in answer:
        return None
    value, origin, kind = answer.get("value"), answer.get("origin"), answer.get("kind", "")
    if type(origin) is not str or type(kind) is not str:
        return None
    is_text = field.read is Values.text and type(value) is str
    if is_text or (field.read is Values.number and type(value) is int and 0 <= value <= MOST):
        return Fact(value, origin, OriginKind.read(kind))
    found = field.read_plain(value) if field.read_plain else None
    return None if found is None else Fact(found, origin, OriginKind.read(kind))
