from pathlib import Path

from tenv.core.versions import Version
from tenv.host.gpus import parse_proc, parse_tegra
from tenv.host.gpus import probe as probe_with
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.nvidia import Nvidia
from tenv.host.places import Places
from tenv.host.report import Gpu
from tests.host.builders import HOSTS, FakeGpu, needs_compiler, nvml, pci, places, program, put, text
from tests.support.each import each


def probe(places: Places) -> Fact[tuple[Gpu, ...]] | Missing:
    return probe_with(Nvidia(places))


def test_no_driver_at_all_and_still_found_by_pci_id(tmp_path: Path) -> None:
    pci(tmp_path, "0000:01:00.0", "0x2182")
    pci(tmp_path, "0000:01:00.1", "0x1aeb", kind="0x040300")  # its sound
    pci(tmp_path, "0000:00:02.0", "0x3e92", vendor="0x8086")
    pci(tmp_path, "0000:81:00.0", "0x20b2", kind="0x030200")
    found = probe(places(tmp_path))
    assert found == Fact(
        (
            Gpu("", pci_id="10de:2182", pci_address="0000:01:00.0"),
            Gpu("", pci_id="10de:20b2", pci_address="0000:81:00.0"),
        ),
        "/sys/bus/pci/devices",
        OriginKind.PCI,
    )


def test_a_bus_without_a_gpu_is_certain(tmp_path: Path) -> None:
    pci(tmp_path, "0000:00:02.0", "0x3e92", vendor="0x8086")
    assert probe(places(tmp_path)) == Fact((), "/sys/bus/pci/devices", OriginKind.PCI)


def test_no_bus_is_not(tmp_path: Path) -> None:
    found = probe(places(tmp_path))
    assert isinstance(found, Missing)
    assert found.reason.endswith("/sys/bus/pci/devices: no such folder")
    assert found.kind is ReasonKind.HIDDEN


@each("device", ["", "0x", "2182", "0xzzzz", "ffff" * 99])
def test_odd_devices_are_left_aside(tmp_path: Path, device: str) -> None:
    pci(tmp_path, "0000:01:00.0", device)
    assert probe(places(tmp_path)) == Fact((), "/sys/bus/pci/devices", OriginKind.PCI)


def test_the_driver_s_own_folder(tmp_path: Path) -> None:
    put(tmp_path / "proc/driver/nvidia/gpus/0000:01:00.0/information", text("information.txt"))
    pci(tmp_path, "0000:01:00.0", "0x2704")
    found = probe(places(tmp_path))
    gpu = Gpu("NVIDIA GeForce RTX 4080", pci_id="10de:2704", pci_address="0000:01:00.0")
    assert found == Fact((gpu,), "/proc/driver/nvidia/gpus", OriginKind.KERNEL)


@each("garbage", ["", "Model:", "x", "\0"])
def test_parse_proc_garbage(garbage: str) -> None:
    assert parse_proc(garbage) is None


def test_a_gpu_that_smi_lost_is_taken_from_the_bus(tmp_path: Path) -> None:
    program(tmp_path / "bin/nvidia-smi", f"cat '{HOSTS}/query-lost.csv'")
    pci(tmp_path, "0000:3b:00.0", "0x2204")
    pci(tmp_path, "0000:5e:00.0", "0x2204")
    found = probe(places(tmp_path))
    assert isinstance(found, Fact)
    assert [(gpu.name, gpu.pci_address) for gpu in found.value] == [
        ("NVIDIA GeForce RTX 3090", "0000:5e:00.0"),
        ("", "0000:3b:00.0"),
    ]
    assert found.origin.startswith("nvidia-smi, which also reports: Unable to determine the device handle")


@needs_compiler
def test_all_gpus_lost(tmp_path: Path) -> None:
    library = nvml(tmp_path, gpus=[FakeGpu("x", (8, 0), 1, status=15)])
    found = probe(places(tmp_path, library=library))
    assert isinstance(found, Missing)
    assert found.reason.startswith("NVML: GPU 0: GPU is lost; nvidia-smi: not found on PATH; ")
    assert found.kind is ReasonKind.FAILED


@needs_compiler
def test_a_gpu_that_the_driver_does_not_have(tmp_path: Path) -> None:
    """Hand-made after GPUs that are passed through to a virtual machine."""
    pci(tmp_path, "0000:01:00.0", "0x2182")
    found = probe(places(tmp_path, library=nvml(tmp_path)))
    assert isinstance(found, Fact)
    assert (found.origin, found.kind) == ("/sys/bus/pci/devices; NVML finds none", OriginKind.PCI)


@each(
    "model, compatible, capability",
    [
        ("NVIDIA Jetson AGX Orin Developer Kit\0", "nvidia,p3737-0000+p3701-0005\0nvidia,tegra234\0", "8.7"),
        ("NVIDIA Jetson Xavier NX\0", "nvidia,p3509-0000+p3668-0001\0nvidia,tegra194\0", "7.2"),
        ("NVIDIA Jetson of tomorrow\0", "nvidia,tegra999\0", None),
    ],
)
def test_jetsons(model: str, compatible: str, capability: str | None) -> None:
    wanted = Version(capability) if capability else None
    assert parse_tegra(model, compatible) == Gpu(model.strip("\0"), wanted)


def test_other_boards_are_none() -> None:
    assert parse_tegra("Raspberry Pi 5 Model B Rev 1.0\0", "raspberrypi,5-model-b\0brcm,bcm2712\0") is None
