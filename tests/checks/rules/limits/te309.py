"""TE309: a machine that lacks what the target takes from it."""

from typing import Any

from tenv.core.versions import Range, Version
from tenv.host.report import FoundPython
from tenv.targets.manifest import DEBUG_PYTHON
from tests.checks.rules.cases import toolkit

OTHER = toolkit("/opt/cuda", "13.0", "nvcc on PATH")

DEBUG = {"system": {DEBUG_PYTHON: Range(">=3.11.2,<3.15")}}


def pythons(*rows: tuple[str, bool]) -> dict[str, Any]:
    """Return a host with Pythons: the minor of each, and whether it is a debug build."""
    found = (FoundPython(f"/usr/bin/python{minor}", Version(minor), headers=True, debug=one) for minor, one in rows)
    return {"pythons": tuple(found)}


SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": None, "toolkits": (OTHER,), "manifest": {"system": {"cuda-toolkit": Range("12.1.*")}}}
SILENT: list[dict[str, Any]] = [
    {"cuda": None, "toolkits": (OTHER,), "manifest": {"system": {"cuda-toolkit": Range("*")}}},
    {"manifest": {"system": {"mpi": Range("*")}}},
    {**pythons(("3.13", False), ("3.11", True)), "manifest": DEBUG},
]
ALSO: list[dict[str, Any]] = [
    {**pythons(("3.13", False)), "manifest": DEBUG},
    {**pythons(("3.13", False), ("3.10", True)), "manifest": DEBUG},
]
