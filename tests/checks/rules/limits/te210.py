"""TE210: an AMD GPU without kernels in rocBLAS."""

from typing import Any

from tests.checks.rules.cases import of_rocm, rocm

SEVERITY = "error"
SPEAKS: dict[str, Any] = of_rocm("gfx1100", rocms=(rocm(kernels=("gfx90a", "gfx942")),))
SILENT: list[dict[str, Any]] = [
    of_rocm("gfx942", rocms=(rocm(kernels=("gfx90a", "gfx942")),)),
    of_rocm("gfx1100", rocms=(rocm(kernels=()),)),
]
