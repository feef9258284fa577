"""TE314: a torch without the target's CUDA."""

from dataclasses import replace
from typing import Any

from tests.checks.rules.cases import wheel

CUDA = 'nvidia-cuda-runtime-cu12==12.8.90; platform_system == "Linux"'


def torch(version: str, *requires: str) -> Any:
    return replace(wheel("torch", version), requires=requires)


SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "12.8", "wheels": (torch("2.9.1", "filelock"),)}
SILENT: list[dict[str, Any]] = [
    {"cuda": "12.8", "wheels": (torch("2.9.1", CUDA),)},
    {"cuda": "12.6", "wheels": (torch("2.9.1+cu126"),)},
    {"cuda": "13.0", "wheels": (torch("2.14.1", "cuda-toolkit[cublas]==13.0.3"),)},
    {"cuda": "10.2", "wheels": (torch("1.12.1"),)},
    {"cuda": "12.8", "wheels": (wheel("torch", "2.9.1"),)},
    {"cuda": None, "wheels": (torch("2.9.1+cpu"),)},
]
ALSO: list[dict[str, Any]] = [
    {"cuda": "12.8", "wheels": (torch("2.9.1+cpu", "filelock"),)},
    {"cuda": "12.8", "wheels": (torch("2.9.1+cu126"),)},
    {"cuda": "12.8", "wheels": (torch("2.9.1", CUDA),), "platform": "win-64"},
]
