"""Detect the version of NVIDIA's kernel driver with four probes; the first answer counts.

A toolkit's minimum is compared with this version. It is neither the newest CUDA version that the driver's libraries
offer (``nvidia-smi`` prints both) nor the version of an installed toolkit. Under WSL, it is the version of the Windows
driver, which has another numbering than Linux: see `is_wsl`.
"""

import re
import sys
from collections.abc import Callable

from tenv.core.versions import Version
from tenv.host.field import HostField, Lane
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.nvidia import Answer, Nvidia, driver_version, quoted
from tenv.host.places import Places, exists, is_wsl, read
from tenv.host.report import DriverKind, ModuleKind

__all__ = ["Places", "is_wsl"]

_MODULE_PROC = "/proc/driver/nvidia/version"
_VGPU = "/sys/module/nvidia_vgpu_vfio"


def parse_module(text: str) -> ModuleKind | None:
    """Return the kind of the module from the text of ``/proc/driver/nvidia/version``; None for other texts."""
    line = next((line for line in text.splitlines() if line.startswith("NVRM version:")), "")
    if "Kernel Module" not in line:
        return None
    return ModuleKind.OPEN if "Open Kernel Module" in line else ModuleKind.PROPRIETARY


def module(places: Places) -> Fact[ModuleKind] | Missing:
    """Return the kind of the loaded kernel module."""
    text = read(places.at(_MODULE_PROC))
    if isinstance(text, Missing):
        return Missing(f"{_MODULE_PROC}: {text.reason}", text.kind)
    kind = parse_module(text)
    if kind is None:
        return Missing(f"{_MODULE_PROC} has no kernel module", ReasonKind.UNREADABLE)
    return Fact(kind, _MODULE_PROC, OriginKind.KERNEL)


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
    lane=Lane.DRIVER,
)

DRIVER_KIND = HostField(
    label="driver kind",
    meaning="the purpose of the driver if it is not the usual one: a vGPU host driver has no CUDA",
    form='`"vgpu-kvm"`',
    probe=lambda scan: driver_kind(scan.places),
    lane=Lane.DRIVER,
)


# The closed module has `x86_64 Kernel Module  535.183.01`, the open one `Open Kernel Module for x86_64  580.65.06`.
_MODULE = re.compile(r"\bModule\b[^\n]*?\s(?P<driver>\d{1,4}(\.\d{1,4}){1,3})(?!\S)", re.ASCII)
_TEGRA = re.compile(r"#\s*R(?P<major>\d+)\s*\(release\),\s*REVISION:\s*(?P<rest>[\d.]+)", re.ASCII)
_SYS = "/sys/module/nvidia/version"
_PROC = "/proc/driver/nvidia/version"
_L4T = "/etc/nv_tegra_release"


def parse_proc(text: str) -> Version | Missing:
    """Return the driver's version from the text of ``/proc/driver/nvidia/version``."""
    match = _MODULE.search(text)
    return Version(match["driver"]) if match else quoted(text)


def parse_sys(text: str) -> Version | Missing:
    """Return the driver's version from the text of ``/sys/module/nvidia/version``."""
    return driver_version(text)


def parse_tegra(text: str) -> str | None:
    """Return the release of Jetson Linux from the text of ``/etc/nv_tegra_release``."""
    match = _TEGRA.search(text)
    return f"{match['major']}.{match['rest'].rstrip('.')}" if match else None


def probe(nvidia: Nvidia) -> Fact[Version] | Missing:
    """Return the version of the kernel driver.

    NVIDIA's tools run only if a library or a program of the driver exists. If it hangs, each of the first two probes
    takes up to `Places.timeout` seconds. The loaded module takes precedence over a library or a program with another
    version, which is a leftover of another driver.

    Args:
        nvidia: The driver's tools on the machine.

    Returns:
        The version with the probe that answered, or `Missing` with every probe's reason.
    """
    asked: list[tuple[str, Missing]] = []
    for name, kind, ask in _probes(nvidia):
        answer = ask()
        if isinstance(answer, Version):
            module, origin = _module(nvidia.places)
            if module is None or module == answer:
                return Fact(answer, name, kind)
            return Fact(module, f"{origin}; {name} reports {answer}", OriginKind.KERNEL)
        asked.append((name, answer))
    missing = Missing.by_all(asked)
    if isinstance(release := jetson_linux(nvidia.places), Fact):
        note = f"{_L4T}: Jetson Linux {release.value}, whose driver has no version of its own"
        return Missing(f"{missing.reason}; {note}", ReasonKind.JETSON)
    return missing


def _probes(nvidia: Nvidia) -> list[tuple[str, OriginKind, Callable[[], Version | Missing]]]:
    smi = ("nvidia-smi", OriginKind.NVIDIA_SMI, lambda: _driver_of(nvidia.smi))
    if sys.platform == "win32":
        return [smi]
    return [
        ("NVML", OriginKind.NVML, lambda: _driver_of(nvidia.nvml)),
        smi,
        (_SYS, OriginKind.KERNEL, lambda: _read(nvidia.places, _SYS, parse_sys)),
        (_PROC, OriginKind.KERNEL, lambda: _read(nvidia.places, _PROC, parse_proc)),
    ]


def _driver_of(answer: Answer | Missing) -> Version | Missing:
    return answer if isinstance(answer, Missing) else answer.driver


def _read(places: Places, path: str, parse: Callable[[str], Version | Missing]) -> Version | Missing:
    text = read(places.at(path))
    return text if isinstance(text, Missing) else parse(text)


def _module(places: Places) -> tuple[Version | None, str]:
    for path, parse in ((_SYS, parse_sys), (_PROC, parse_proc)):
        if isinstance(found := _read(places, path, parse), Version):
            return found, path
    return None, ""


def jetson_linux(places: Places) -> Fact[Version] | Missing:
    """Return the release of Jetson Linux, whose driver version is not comparable with other hosts'."""
    text = read(places.at(_L4T))
    if isinstance(text, Missing):
        return Missing(f"{_L4T}: {text.reason}", text.kind)
    release = parse_tegra(text)
    if release is None:
        return Missing(f"{_L4T} has no release", ReasonKind.UNREADABLE)
    return Fact(Version(release), _L4T, OriginKind.SYSTEM)


DRIVER = HostField(
    label="driver",
    meaning=(
        "the version of NVIDIA's kernel driver; under WSL, the version of the Windows driver, which has another "
        "numbering"
    ),
    form='`"550.54.15"`',
    probe=lambda scan: scan.driver,
    lane=Lane.DRIVER,
)

L4T = HostField(
    label="l4t",
    meaning="the release of Jetson Linux, which determines the CUDA of a Jetson's driver",
    form='`"36.4.3"`',
    probe=lambda scan: jetson_linux(scan.places),
    lane=Lane.DRIVER,
)
