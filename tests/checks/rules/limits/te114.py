"""TE114: a vGPU, which needs a license."""

from typing import Any

from tests.checks.rules.cases import gpu

SEVERITY = "note"
SPEAKS: dict[str, Any] = {"gpus": (gpu("NVIDIA A10-24Q", "8.6"),)}
SILENT: list[dict[str, Any]] = [
    {"gpus": (gpu("NVIDIA A10", "8.6"),)},
    {"gpus": (gpu("NVIDIA A10-24Q", "8.6"),), "cuda": None},
    {"gpus": (gpu("NVIDIA A100-SXM4-80GB", "8.0"),)},
]
ALSO: list[dict[str, Any]] = [{"gpus": (gpu("GRID V100D-8C", "7.0"),), "cuda": "12.4"}]
