"""TE303: a package is made for another CUDA major."""

from dataclasses import replace
from typing import Any

from tests.checks.rules.cases import wheel

FILE = "nvidia_cudnn_cu12-9.20.0.48-py3-none-manylinux_2_27_x86_64.whl"

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"wheels": (replace(wheel("nvidia-cudnn-cu12", "9.20.0.48"), file=FILE),)}
SILENT: list[dict[str, Any]] = [
    {"wheels": (wheel("nvidia-cudnn-cu13", "9.24.0.43"),)},
    {"cuda": None, "wheels": (wheel("nvidia-cudnn-cu12", "9.20.0.48"),)},
]
