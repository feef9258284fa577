"""TE315: a ROCm with missing parts."""

from typing import Any

from tests.checks.rules.cases import of_rocm, rocm

SEVERITY = "error"
SPEAKS: dict[str, Any] = of_rocm(rocms=(rocm(parts=(("hip", "6.4"), ("rocblas", "4.4"))),), torch="2.9")
SILENT: list[dict[str, Any]] = [
    of_rocm(torch="2.9"),
    of_rocm(rocms=(rocm(parts=()),), torch="2.9"),
    of_rocm(rocms=(rocm(parts=(("hip", "6.4"),)),)),
]
