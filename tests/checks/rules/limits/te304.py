"""TE304: two CUDA toolkits in sight."""

from typing import Any

from tests.checks.rules.cases import toolkit

HOME = toolkit("/usr/local/cuda-12.4", "12.4", "CUDA_HOME")
OTHER = toolkit("/opt/cuda", "13.0", "nvcc on PATH")

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {"toolkits": (HOME, OTHER)}
SILENT: list[dict[str, Any]] = [
    {"toolkits": (HOME,)},
    {"toolkits": (toolkit("/a", "13.0", "CUDA_HOME", "nvcc on PATH"),)},
    {"toolkits": ()},
]
