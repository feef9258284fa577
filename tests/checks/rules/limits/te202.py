"""TE202: a GPU newer than the toolkit."""

from typing import Any

from tests.checks.rules.cases import gpu

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "11.8", "gpus": (gpu("NVIDIA B200", "10.0"),)}
SILENT: list[dict[str, Any]] = [
    {"cuda": "11.8", "gpus": (gpu("NVIDIA H100", "9.0"),)},
    {"gpus": (gpu("NVIDIA B200", "10.0"),)},
    {"cuda": "11.8", "gpus": (gpu("NVIDIA B200", "10.0"),), "arch_list": "9.0+PTX"},
    {"cuda": "11.7", "gpus": (gpu("NVIDIA GeForce RTX 4090", "8.9"),)},
]
