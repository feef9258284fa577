"""TE317: a ROCm beside CUDA."""

from typing import Any

from tests.checks.rules.cases import of_rocm, rocm

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {"rocms": (rocm(),)}
SILENT: list[dict[str, Any]] = [
    {"rocms": (rocm(),), "exported": {"USE_ROCM": "0"}},
    {"rocms": (rocm(),), "manifest": {"environment": {"USE_ROCM": "OFF"}}},
    {"rocms": (rocm(way="/opt/rocm-6.4.3"),)},
    {"cuda": None, "rocms": (rocm(),)},
    of_rocm(),
]
ALSO: list[dict[str, Any]] = [{"rocms": (rocm(way="ROCM_PATH"),), "exported": {"USE_ROCM": "1"}}]
