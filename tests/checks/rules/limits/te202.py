"""TE202: a GPU that is newer than the toolkit."""

from typing import Any

from tests.checks.rules.cases import gpu

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {"cuda": "11.8", "gpus": (gpu("NVIDIA B200", "10.0"),)}
SILENT: list[dict[str, Any]] = [
    {"cuda": "11.8", "gpus": (gpu("NVIDIA H100", "9.0"),)},
    {"gpus": (gpu("NVIDIA B200", "10.0"),)},
]
