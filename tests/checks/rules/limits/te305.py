"""TE305: a library that is not known for this CUDA."""

from typing import Any

from tests.checks.rules.cases import wheel

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {"wheels": (wheel("nvidia-cusparselt-cu13", "0.7.1"), wheel("nvidia-cudnn-cu13", "8.9.7.29"))}
SILENT: list[dict[str, Any]] = [
    {"wheels": (wheel("nvidia-cudnn-cu13", "9.27.0.1"),)},
    {"wheels": (wheel("nvidia-cudnn-cu13", "99.1.0"),)},
]
