"""TE208: an AMD GPU that ROCm does not list."""

from typing import Any

from tests.checks.rules.cases import of_rocm, rocm

SEVERITY = "warning"
SPEAKS: dict[str, Any] = of_rocm("gfx1151")
SILENT: list[dict[str, Any]] = [
    of_rocm("gfx942"),
    {"amd_gpus": ()},
]
ALSO: list[dict[str, Any]] = [
    of_rocm("gfx1031", exported={"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}),
    of_rocm(rocms=(rocm("5.7", "/usr"),)),
]
