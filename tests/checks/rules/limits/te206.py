"""TE206: a GPU for which TORCH_CUDA_ARCH_LIST names no code."""

from typing import Any

from tenv.core.versions import Version
from tests.checks.rules.cases import gpu

RTX = gpu("NVIDIA GeForce RTX 5090", "12.0")
T4 = gpu("Tesla T4", "7.5")

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"gpus": (RTX,), "arch_list": "8.0;9.0"}
SILENT: list[dict[str, Any]] = [
    {"gpus": (RTX,), "arch_list": "8.0;12.0"},
    {"gpus": (gpu("NVIDIA RTX A6000", "8.6"),), "arch_list": "8.0"},
    {"gpus": (RTX,), "arch_list": "Auto"},
    {"gpus": (RTX,), "arch_list": "Blackwell"},
]
ALSO: list[dict[str, Any]] = [
    {"gpus": (T4,), "cuda": "12.5", "driver": Version("550.90.07"), "arch_list": "5.2+PTX"},
    {"gpus": (gpu("NVIDIA H100", "9.0"),), "arch_list": "8.0a+PTX"},
]
