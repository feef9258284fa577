"""TE205: an architecture that nvcc does not support."""

from typing import Any

from tests.checks.rules.cases import gpu

RTX = gpu("NVIDIA GeForce RTX 4090", "8.9")

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "11.7", "gpus": (RTX,)}
SILENT: list[dict[str, Any]] = [
    {"cuda": "11.8", "gpus": (RTX,)},
    {"cuda": "11.7", "gpus": (RTX,), "arch_list": "8.6"},
    {"cuda": "12.1", "gpus": (gpu("NVIDIA GeForce RTX 5090", "12.0"),)},
]
ALSO: list[dict[str, Any]] = [{"cuda": "13.0", "arch_list": "7.0;8.0"}]
