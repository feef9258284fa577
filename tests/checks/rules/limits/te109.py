"""TE109: a kernel module that does not support the GPU."""

from typing import Any

from tenv.core.versions import Version
from tenv.host.report import ModuleKind
from tests.checks.rules.cases import gpu

P4 = gpu("Tesla P4", "6.1")
GB10 = gpu("NVIDIA GB10", "12.1")
RTX = gpu("NVIDIA GeForce RTX 5090", "12.0")
OPEN, PROPRIETARY = ModuleKind.OPEN, ModuleKind.PROPRIETARY

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "12.8", "gpus": (P4,), "module": OPEN}
SILENT: list[dict[str, Any]] = [
    {"cuda": "12.8", "gpus": (P4,), "module": PROPRIETARY},
    {"cuda": "12.8", "gpus": (gpu("Tesla T4", "7.5"),), "module": OPEN},
    {"cuda": "12.8", "gpus": (gpu("Tesla T4", "7.5"),), "module": PROPRIETARY},
    {"gpus": (RTX,), "module": OPEN},
    {"gpus": (GB10,), "module": PROPRIETARY, "driver": Version("580.159.03")},
    {"cuda": None, "gpus": (P4,), "module": OPEN},
]
ALSO: list[dict[str, Any]] = [
    {"gpus": (RTX,), "module": PROPRIETARY},
    {"gpus": (GB10,), "module": PROPRIETARY, "driver": Version("580.173.02")},
    {"cuda": "11.7", "gpus": (gpu("Tesla V100-PCIE-32GB", "7.0"),), "module": OPEN},
]
