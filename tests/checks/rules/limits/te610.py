"""TE610: a CUDA that PyTorch fails with."""

from typing import Any

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "13.0", "torch": "2.8.0"}
SILENT: list[dict[str, Any]] = [
    {"cuda": "13.0", "torch": "2.9.1"},
    {"cuda": "12.9", "torch": "2.8.0"},
    {"cuda": "12.1", "torch": "2.1.2"},
    {"cuda": "13.0"},
    {"cuda": None, "torch": "2.8.0"},
    {"cuda": "12.4", "torch": "2.4.1", "platform": "win-64"},
]
ALSO: list[dict[str, Any]] = [
    {"cuda": "12.1", "torch": "1.12.1"},
    {"cuda": "12.6", "torch": "2.4.1", "platform": "win-64"},
    {"cuda": "11.4", "torch": "2.4.1", "platform": "linux-aarch64"},
    {"cuda": "11.2", "torch": "2.0.1"},
]
