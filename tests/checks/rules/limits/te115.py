"""TE115: the GPUs of a board with NVSwitch."""

from dataclasses import replace
from typing import Any

from tenv.host.report import FabricState
from tests.checks.rules.cases import gpu

H100 = gpu("NVIDIA H100 80GB HBM3", "9.0")

SEVERITY = "note"
SPEAKS: dict[str, Any] = {"gpus": (H100,) * 5}
SILENT: list[dict[str, Any]] = [
    {"gpus": (H100,) * 4},
    {"gpus": (replace(H100, fabric=FabricState.COMPLETED),) * 8},
    {"gpus": (replace(gpu("NVIDIA H200", "9.0"), fabric=FabricState.OTHER),)},
    {"gpus": (gpu("NVIDIA H100 PCIe", "9.0"),) * 8},
    {"gpus": (gpu("NVIDIA L40S", "8.9"),) * 8},
    {"gpus": (H100,) * 8, "cuda": None},
]
ALSO: list[dict[str, Any]] = [{"gpus": (gpu("NVIDIA B200", "10.0"),) * 8}]
