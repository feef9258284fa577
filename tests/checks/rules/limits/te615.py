"""TE615: a Python that neither the machine nor uv has."""

from typing import Any

from tenv.core.versions import CondaRange, Range, Version
from tenv.host.interface import Missing, ReasonKind
from tenv.host.report import FoundPython
from tenv.targets.manifest import DEBUG_PYTHON, CondaRequest

OLD = {"manifest": {"python": Range(">=3.6,<3.7")}}


def found(*minors: str, debug: bool = False) -> dict[str, Any]:
    return {"pythons": tuple(FoundPython(f"/usr/bin/python{one}", Version(one), True, debug) for one in minors)}


SEVERITY = "error"
SPEAKS: dict[str, Any] = {**found("3.8"), **OLD}
SILENT: list[dict[str, Any]] = [
    {**found("3.8", "3.6"), **OLD},
    {**found("3.6"), "manifest": {"python": Range(">=3.8,<3.9")}},  # uv brings it
    {**found("3.12"), "manifest": {"python": Range(">=3.7,<3.9")}},
    OLD,  # the report does not say
    {"pythons": Missing("`Could not collect`", ReasonKind.NOT_COLLECTED), **OLD},
    {"pythons": Missing("gave no answer within 5 s", ReasonKind.TIMEOUT), **OLD},
    {
        **found("3.8"),
        "manifest": {"python": None, "dependencies": {"python": CondaRequest(CondaRange("3.6.*"))}},
    },
    {**found("3.8"), "manifest": {"python": Range("3.6.*"), "system": {DEBUG_PYTHON: Range(">=3.6")}}},
]
ALSO: list[dict[str, Any]] = [
    {**found("3.6", debug=True), **OLD},
    {"pythons": Missing("no program `python3.N` was found", ReasonKind.NONE), **OLD},
    {**found("3.12"), "manifest": {"python": Range(">=3.7,<3.8")}},
]
