"""TE301: a CUDA package is of another release than its toolkit."""

from dataclasses import replace
from typing import Any

from tests.checks.rules.cases import wheel

FILE = "nvidia_nvjitlink-13.5.37-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl"

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "13.2", "wheels": (replace(wheel("nvidia-nvjitlink", "13.5.37"), file=FILE),)}
SILENT: list[dict[str, Any]] = [
    {"cuda": "13.2", "wheels": (wheel("nvidia-nvjitlink", "13.2.51"),)},
    {"wheels": (wheel("nvidia-cublas", "13.1.1.3"),)},
    {"cuda": None, "wheels": (wheel("nvidia-nvjitlink", "13.5.37"),)},
]
