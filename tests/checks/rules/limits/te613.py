"""TE613: a Python without its headers."""

from typing import Any

from tenv.core.versions import CondaRange, Range, Version
from tenv.host.report import FoundPython
from tenv.targets.manifest import DEBUG_PYTHON, CondaRequest


def debug(minor: str, *, headers: bool) -> FoundPython:
    """Return a debug build of Python."""
    return FoundPython(f"/usr/bin/python{minor}-dbg", Version(minor), headers, debug=True)


def found(*rows: tuple[str, bool]) -> dict[str, Any]:
    return {"pythons": tuple(FoundPython(f"/usr/bin/python{minor}", Version(minor), has) for minor, has in rows)}


SEVERITY = "error"
SPEAKS: dict[str, Any] = found(("3.12", False))
SILENT: list[dict[str, Any]] = [
    found(("3.12", True)),
    found(("3.12", False), ("3.11", True)),
    found(("3.13", False)),
    {"pythons": (debug("3.12", headers=False),)},
    {
        "pythons": (FoundPython("/usr/bin/python3.12", Version("3.12"), headers=False), debug("3.12", headers=True)),
        "manifest": {"system": {DEBUG_PYTHON: Range(">=3.11")}},
    },
    {},
    {
        **found(("3.12", False)),
        "manifest": {"python": None, "dependencies": {"python": CondaRequest(CondaRange("*"))}},
    },
]
ALSO: list[dict[str, Any]] = [
    found(("3.12", False), ("3.11", False)),
    {**found(("3.13", True), ("3.11", False)), "manifest": {"python": Range("3.11.*")}},
    {
        "pythons": (FoundPython("/usr/bin/python3.12", Version("3.12"), headers=True), debug("3.12", headers=False)),
        "manifest": {"system": {DEBUG_PYTHON: Range(">=3.11")}},
    },
]
