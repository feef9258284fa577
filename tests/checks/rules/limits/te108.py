"""TE108: a driver that does not support the GPU."""

from typing import Any

from tenv.core.versions import Version
from tests.checks.rules.cases import gpu

GTX = gpu("NVIDIA GeForce GTX 1050", "6.1")
RTX = gpu("NVIDIA GeForce RTX 5090", "12.0")

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "12.9", "driver": Version("595.58.03"), "gpus": (GTX,)}
SILENT: list[dict[str, Any]] = [
    {"cuda": "12.9", "driver": Version("580.142"), "gpus": (GTX,)},
    {"cuda": "11.4", "driver": Version("470.256.02"), "gpus": (gpu("NVIDIA GeForce GTX 760", "3.0"),)},
    {"cuda": "12.9", "driver": Version("595.58.03"), "gpus": (gpu("Tesla T4", "7.5"),)},
    {"cuda": "12.9", "driver": Version("582.53"), "gpus": (GTX,), "wsl": True},
    {"cuda": "12.8", "driver": Version("570.86.16"), "gpus": (RTX,)},
    {"cuda": None, "driver": Version("595.58.03"), "gpus": (GTX,)},
]
ALSO: list[dict[str, Any]] = [
    {"cuda": "11.4", "driver": Version("535.104.05"), "gpus": (gpu("NVIDIA GeForce GTX 760", "3.0"),)},
    {"cuda": "12.8", "driver": Version("560.35.03"), "gpus": (RTX,)},
    {"cuda": "12.8", "driver": Version("595.58.03"), "gpus": (GTX, gpu("Tesla V100", "7.0"))},
]
