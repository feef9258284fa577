"""TE310: a CUDA toolkit without NVRTC's header."""

from typing import Any

from tests.checks.rules.cases import conda

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "12.8", "conda": (conda("cuda-nvcc_linux-64", "12.8.93"),)}
SILENT: list[dict[str, Any]] = [
    {"cuda": "12.8", "conda": (conda("cuda-nvcc_linux-64", "12.8.93"), conda("cuda-nvrtc-dev", "12.8.93"))},
    {"cuda": "11.8", "conda": (conda("cuda-nvcc", "11.8.89", channel="nvidia"),)},
    {"cuda": "13.0"},
]
