"""TE204: a GPU that PyTorch's own builds have dropped."""

from typing import Any

from tests.checks.rules.cases import gpu

T4G = gpu("NVIDIA T4G", "7.5")
A100 = gpu("NVIDIA A100-SXM4-80GB", "8.0")

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {"cuda": "12.6", "torch": "2.14.1", "gpus": (T4G,), "platform": "linux-aarch64"}
SILENT: list[dict[str, Any]] = [
    {"cuda": "12.6", "torch": "2.14.1", "gpus": (A100,), "platform": "linux-aarch64"},
    {"cuda": "12.6", "torch": "2.14.1", "gpus": (T4G,)},
    {"cuda": "12.6", "gpus": (T4G,), "platform": "linux-aarch64"},
]
