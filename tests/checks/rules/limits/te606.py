"""TE606: a C++ standard that nvcc does not support."""

from typing import Any

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "11.8", "torch": "2.13.0"}
SILENT: list[dict[str, Any]] = [
    {"cuda": "12.0", "torch": "2.13.0"},
    {"cuda": "11.8", "torch": "2.12.1"},
    {"cuda": None, "torch": "2.13.0"},
]
