"""Detect GPUs with the driver's tools, or from the kernel's view of the PCI bus if those fail.

A GPU that only the bus shows has no name here; the tables of facts have its name by PCI id.
"""

import re
from dataclasses import replace
from pathlib import Path

from tenv.core.files import entries_of
from tenv.core.size_text import format_bytes
from tenv.core.versions import Version
from tenv.host.field import HostField, Lane
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.nvidia import Nvidia, pci_address
from tenv.host.places import Places, is_folder, is_wsl, read
from tenv.host.report import Gpu

_PROC = "/proc/driver/nvidia/gpus"
_BUS = "/sys/bus/pci/devices"
_TREE = "/proc/device-tree"
_DISPLAY = "0x03"  # PCI class 03: VGA compatible, 3D and other display controllers
# The compute capability of each chip: developer.nvidia.com/cuda-gpus and -legacy-gpus, Jetson products.
_CHIPS = {
    "tegra210": "5.3",
    "tegra186": "6.2",
    "tegra194": "7.2",
    "tegra234": "8.7",
    "tegra264": "11.0",
}

_Found = Fact[tuple[Gpu, ...]]


def probe(nvidia: Nvidia) -> _Found | Missing:
    """Return the GPUs.

    Args:
        nvidia: The driver's tools on the machine.

    Returns:
        The GPUs with the probe that reported them; no GPU if the PCI bus is readable and has none; else `Missing`.
    """
    places = nvidia.places
    bus = _bus(places)
    on_bus = () if isinstance(bus, Missing) else bus
    answer, asked = _by_tools(nvidia, on_bus)
    if answer and answer.value:
        return answer
    for seen in (_proc(places, on_bus), Fact(on_bus, _BUS, OriginKind.PCI) if on_bus else None, _tegra(places)):
        if seen:
            return replace(seen, origin=f"{seen.origin}; {answer.origin} finds none") if answer else seen
    if answer:
        return answer
    if isinstance(bus, Missing):
        return Missing.by_all([*asked, (_BUS, bus)])
    if is_wsl(places.root):  # Windows hides its GPU from the bus that Linux sees
        return Missing.by_all([*asked, (_BUS, Missing("under WSL, it does not show the GPU", ReasonKind.HIDDEN))])
    return Fact((), _BUS, OriginKind.PCI)


def _by_tools(nvidia: Nvidia, on_bus: tuple[Gpu, ...]) -> tuple[_Found | None, list[tuple[str, Missing]]]:
    """Return the answer of the first tool that has one, and why earlier ones have none."""
    asked = []
    for name, kind, ask in nvidia.tools():
        answer = ask()
        gpus = answer if isinstance(answer, Missing) else answer.gpus
        if isinstance(gpus, Missing):
            asked.append((name, gpus))
        elif isinstance(answer, Missing) or not answer.lost:
            return _completed(Fact(gpus, name, kind), on_bus), asked
        else:
            silent = _silent(gpus, on_bus)
            if gpus or silent:
                origin = f"{name}, which also reports: {'; '.join(answer.lost)}"
                return _completed(Fact(gpus + silent, origin, kind), on_bus), asked
            asked.append((name, Missing("; ".join(answer.lost), ReasonKind.FAILED)))
    return None, asked


def _silent(gpus: tuple[Gpu, ...], on_bus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """Return the GPUs on the bus that gave no answer."""
    answered = {gpu.pci_address for gpu in gpus}
    return tuple(gpu for gpu in on_bus if gpu.pci_address not in answered)


def _completed(found: _Found, on_bus: tuple[Gpu, ...]) -> _Found:
    """Add the ids that a tool does not report."""
    ids = {gpu.pci_address: gpu.pci_id for gpu in on_bus}
    gpus = (gpu if gpu.pci_id else replace(gpu, pci_id=ids.get(gpu.pci_address, "")) for gpu in found.value)
    return replace(found, value=tuple(gpus))


def parse_proc(text: str) -> Gpu | None:
    """Return the GPU of a ``/proc/driver/nvidia/gpus/*/information``; None for other texts."""
    values = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}
    if not (name := values.get("Model")):
        return None
    return Gpu(name="" if name == "Unknown" else name, pci_address=pci_address(values.get("Bus Location", "")))


def _proc(places: Places, on_bus: tuple[Gpu, ...]) -> _Found | None:
    texts = [read(folder / "information") for folder in entries_of(places.at(_PROC))]
    gpus = tuple(gpu for text in texts if isinstance(text, str) and (gpu := parse_proc(text)))
    return _completed(Fact(gpus, _PROC, OriginKind.KERNEL), on_bus) if gpus else None


def _bus(places: Places) -> tuple[Gpu, ...] | Missing:
    devices = entries_of(places.at(_BUS))
    if not devices and not is_folder(places.at(_BUS)):
        return Missing("no such folder", ReasonKind.HIDDEN)
    found = []
    for device in devices:
        vendor, number, kind = (_word(device / name) for name in ("vendor", "device", "class"))
        if vendor == "0x10de" and kind.startswith(_DISPLAY) and re.fullmatch("0x[0-9a-f]{4}", number):
            found.append(Gpu(name="", pci_id=f"10de:{number[2:]}", pci_address=pci_address(device.name)))
    return tuple(found)


def parse_tegra(model: str, compatible: str) -> Gpu | None:
    """Return the GPU of a Jetson from its device tree; None for other boards.

    Args:
        model: The text of ``/proc/device-tree/model``.
        compatible: The text of ``/proc/device-tree/compatible``: the board and its chip, separated by zero bytes.
    """
    chips = re.findall(r"nvidia,(tegra\d+)", compatible)
    name = model.strip("\0\n ")
    if not chips and not re.search("jetson|nvidia", name, re.IGNORECASE):
        return None
    capability = next((_CHIPS[chip] for chip in chips if chip in _CHIPS), None)
    return Gpu(name=name, compute_capability=Version(capability) if capability else None)


def _tegra(places: Places) -> _Found | None:
    texts = [read(places.at(f"{_TREE}/{name}")) for name in ("model", "compatible")]
    model, compatible = ("" if isinstance(text, Missing) else text for text in texts)
    gpu = parse_tegra(model, compatible)
    return Fact((gpu,), f"{_TREE}/model", OriginKind.DEVICE_TREE) if gpu else None


def _word(path: Path) -> str:
    text = read(path)
    return "" if isinstance(text, Missing) else text.strip().lower()


def _show(gpu: Gpu) -> str:
    words = [
        gpu.name or "a GPU without a name",
        f"compute capability {gpu.compute_capability}" if gpu.compute_capability else "",
        format_bytes(gpu.memory) if gpu.memory else "",
        gpu.pci_id,
        f"at {gpu.pci_address}" if gpu.pci_address else "",
        "split into instances (MIG)" if gpu.mig else "",
        f"NVSwitch: {gpu.fabric}" if gpu.fabric else "",
    ]
    return ", ".join(filter(None, words))


GPUS = HostField(
    label="gpus",
    meaning=(
        "name, compute capability, memory, PCI id and address, whether MIG splits it, and the state of its "
        "registration with NVSwitch"
    ),
    form=(
        "a list of `name`, `compute_capability` (or null), `memory` (or null), `pci_id` (`10de:2182`), `pci_address`, "
        "`mig`, `fabric` (`not-started`, `in-progress`, `completed`, or null)"
    ),
    probe=lambda scan: probe(scan.nvidia),
    show=lambda gpus: list(map(_show, gpus)),
    lane=Lane.DRIVER,
)
