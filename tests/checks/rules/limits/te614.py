"""TE614: a driver that PyTorch fails with."""

from typing import Any

from tenv.core.versions import Version

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "12.3", "driver": Version("525.105.12"), "torch": "2.5.0.dev20240904"}
SILENT: list[dict[str, Any]] = [
    {"cuda": "12.3", "driver": Version("530.30.02"), "torch": "2.5.0.dev20240904"},
    {"cuda": "12.0", "driver": Version("525.105.12"), "torch": "2.5.0.dev20240904"},
    {"cuda": "12.3", "driver": Version("525.105.12"), "torch": "2.5.0"},
    {"cuda": "12.3", "driver": Version("525.105.12"), "torch": "2.4.1"},
    {"cuda": "12.3", "driver": Version("525.105.12"), "torch": "2.6.0a0"},
    {"cuda": None, "driver": Version("525.105.12"), "torch": "2.5.0.dev20240904"},
    {"cuda": "12.3", "driver": Version("525.105.12")},
]
