"""TE616: a ROCm that PyTorch was not published for."""

from typing import Any

from tests.checks.rules.cases import of_rocm

SEVERITY = "warning"
SPEAKS: dict[str, Any] = of_rocm(torch="2.13")
SILENT: list[dict[str, Any]] = [
    of_rocm(torch="2.9"),
    of_rocm(torch="2.15"),
    of_rocm(),
]
