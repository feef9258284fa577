"""TE603: a CMake that PyTorch can't use."""

from typing import Any

from tests.checks.rules.cases import wheel

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"torch": "2.12.0", "wheels": (wheel("cmake", "3.16.3"),)}
SILENT: list[dict[str, Any]] = [
    {"torch": "2.12.0", "wheels": (wheel("cmake", "3.31.10"),)},
    {"wheels": (wheel("cmake", "3.16.3"),)},
]
