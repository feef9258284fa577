"""TE111: the driver of a vGPU host."""

from typing import Any

from tenv.host.interface import Missing
from tenv.host.report import DriverKind

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"driver_kind": DriverKind.VGPU_HOST}
SILENT: list[dict[str, Any]] = [
    {"driver_kind": DriverKind.OTHER},
    {"driver_kind": Missing("there is no /sys/module/nvidia_vgpu_vfio")},
    {"cuda": None, "driver_kind": DriverKind.VGPU_HOST},
]
