"""TE309: a machine that lacks what the target takes from it."""

from typing import Any

from tenv.core.versions import Range
from tests.checks.rules.cases import toolkit

OTHER = toolkit("/opt/cuda", "13.0", "nvcc on PATH")

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": None, "toolkits": (OTHER,), "manifest": {"system": {"cuda-toolkit": Range("12.1.*")}}}
SILENT: list[dict[str, Any]] = [
    {"cuda": None, "toolkits": (OTHER,), "manifest": {"system": {"cuda-toolkit": Range("*")}}},
    {"manifest": {"system": {"mpi": Range("*")}}},
]
