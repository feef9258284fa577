"""Detect the kind of NVIDIA's kernel module, and whether it is a vGPU host's.

The open module supports only Turing and newer GPUs, some GPUs require it, and a vGPU host driver has no CUDA.
"""

from tenv.host.field import HostField, Lane
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.places import Places, exists, read
from tenv.host.report import DriverKind, ModuleKind

__all__ = ["DRIVER_KIND", "MODULE", "driver_kind", "module", "parse_module"]

_PROC = "/proc/driver/nvidia/version"
_VGPU = "/sys/module/nvidia_vgpu_vfio"


def parse_module(text: str) -> ModuleKind | None:
    """Return the kind of the module from the text of ``/proc/driver/nvidia/version``; None for other texts."""
    line = next((line for line in text.splitlines() if line.startswith("NVRM version:")), "")
    if "Kernel Module" not in line:
        return None
    return ModuleKind.OPEN if "Open Kernel Module" in line else ModuleKind.PROPRIETARY


def module(places: Places) -> Fact[ModuleKind] | Missing:
    """Return the kind of the loaded kernel module."""
    text = read(places.at(_PROC))
    if isinstance(text, Missing):
        return Missing(f"{_PROC}: {text.reason}", text.kind)
    kind = parse_module(text)
    if kind is None:
        return Missing(f"{_PROC} has no kernel module", ReasonKind.UNREADABLE)
    return Fact(kind, _PROC, OriginKind.KERNEL)


def driver_kind(places: Places) -> Fact[DriverKind] | Missing:
    """Return the purpose of the driver; `Missing` if it is the usual one."""
    if exists(places.at(_VGPU)):
        return Fact(DriverKind.VGPU_HOST, _VGPU, OriginKind.KERNEL)
    return Missing(f"{_VGPU} does not exist", ReasonKind.NONE)


MODULE = HostField(
    label="module",
    meaning="the kind of the loaded kernel module of NVIDIA's driver",
    form='`"open"` or `"proprietary"`',
    probe=lambda scan: module(scan.places),
    show=lambda kind: [kind],
    lane=Lane.DRIVER,
)

DRIVER_KIND = HostField(
    label="driver kind",
    meaning="the purpose of the driver if it is not the usual one: a vGPU host driver has no CUDA",
    form='`"vgpu-kvm"`',
    probe=lambda scan: driver_kind(scan.places),
    show=lambda kind: [kind],
    lane=Lane.DRIVER,
)
