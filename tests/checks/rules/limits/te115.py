"""TE115: the GPUs of a board with NVSwitch."""

from typing import Any

from tests.checks.rules.cases import gpu

SEVERITY = "note"
SPEAKS: dict[str, Any] = {"gpus": (gpu("NVIDIA H100 80GB HBM3", "9.0"),) * 8}
SILENT: list[dict[str, Any]] = [
    {"gpus": (gpu("NVIDIA H100 80GB HBM3", "9.0"),) * 4},
    {"gpus": (gpu("NVIDIA H100 PCIe", "9.0"),) * 8},
    {"gpus": (gpu("NVIDIA L40S", "8.9"),) * 8},
    {"gpus": (gpu("NVIDIA H100 80GB HBM3", "9.0"),) * 8, "cuda": None},
]
ALSO: list[dict[str, Any]] = [{"gpus": (gpu("NVIDIA B200", "10.0"),) * 8}]
