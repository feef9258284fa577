"""Eight kinds of machines, each seen by NVML, by nvidia-smi, by /proc and by /sys alone: what each way tells."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tenv.host.collect import collect
from tenv.host.interface import Fact, Missing
from tests.host.builders import HOSTS, FakeGpu, needs_compiler, nvml, pci, places, program, put
from tests.support.each import each

pytestmark = needs_compiler

A100 = FakeGpu("NVIDIA A100-SXM4-80GB", (8, 0), 81920, 0x20B210DE, "00000000:07:00.0", mig=0)
A100_TOO = FakeGpu("NVIDIA A100-SXM4-80GB", (8, 0), 81920, 0x20B210DE, "00000000:0F:00.0", mig=0)
SPLIT = FakeGpu("NVIDIA A100-SXM4-80GB", (8, 0), 81920, 0x20B210DE, "00000000:07:00.0", mig=1)
LAPTOP = FakeGpu("NVIDIA GeForce RTX 3070 Laptop GPU", (8, 6), 8192, 0x249D10DE, "00000000:01:00.0")
GTX = FakeGpu("NVIDIA GeForce GTX 1660 Ti", (7, 5), 6144, 0x218210DE, "00000000:02:00.0")
ORIN = FakeGpu("Orin (nvgpu)", (8, 7), 0)
MODULE = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Sun May 12 19:39:15 UTC 2024\n"
MODULE_OF_JETSON = "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  {}  Release Build  (buildbrain@mobile)\n"
WSL = "5.15.167.4-microsoft-standard-WSL2\n"


@dataclass(frozen=True)
class Machine:
    """A kind of machine.

    Attributes:
        driver: Its kernel driver; empty without one.
        gpus: Its GPUs.
        around: What else is there.
        init: How NVML starts.
        smi: The script of an nvidia-smi that does not answer.
        on_bus: Whether PCI and /proc/driver/nvidia show the GPUs.
        architecture: What `uname -m` says.
    """

    driver: str
    gpus: tuple[FakeGpu, ...]
    around: Callable[[Path], object] = lambda root: None
    init: str = "return 0;"
    smi: str = ""
    on_bus: bool = True
    architecture: str = "x86_64"


def jetson(root: Path) -> None:
    put(root / "proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit\0")
    put(root / "proc/device-tree/compatible", "nvidia,p3737-0000+p3701-0005\0nvidia,tegra234\0")


def wsl(root: Path) -> None:
    put(root / "proc/sys/kernel/osrelease", WSL)
    pci(root, "5d5b:00:00.0", "0x008e", vendor="0x1414", kind="0x030200")  # Microsoft's stand-in


def container(root: Path) -> None:
    put(root / ".dockerenv")
    pci(root, "0000:00:05.0", "0x1041", vendor="0x1af4", kind="0x020000")


def second_chip(root: Path) -> None:
    pci(root, "0000:00:02.0", "0x9a60", vendor="0x8086")


MACHINES = {
    "server": Machine("535.183.01", (A100, A100_TOO)),
    "laptop": Machine("550.54.15", (LAPTOP,), second_chip),
    "wsl2": Machine("571.96", (LAPTOP,), wsl, on_bus=False),
    "jetson": Machine("540.4.0", (ORIN,), jetson, on_bus=False, architecture="aarch64"),
    "container": Machine("", (), container, init="return 9;", smi=f"cat '{HOSTS}/smi-no-driver.txt'; exit 9"),
    "two": Machine("580.65.06", (LAPTOP, GTX)),
    "mismatch": Machine("570.133.20", (GTX,), init="return 18;", smi=f"cat '{HOSTS}/smi-mismatch.txt'; exit 18"),
    "mig": Machine("535.183.01", (SPLIT,)),
}


def by_nvml(root: Path, machine: Machine) -> str:
    return nvml(root, init=machine.init, driver=machine.driver, cuda=12020, gpus=machine.gpus)


def by_smi(root: Path, machine: Machine) -> None:
    mig = {-1: "[N/A]", 0: "Disabled", 1: "Enabled"}
    rows = [
        f"{machine.driver}, {gpu.name}, {gpu.mib or '[N/A]'}, {gpu.address or '[N/A]'}, "
        f"{f'0x{gpu.id:08X}' if gpu.id else '[N/A]'}, {gpu.capability[0]}.{gpu.capability[1]}, {mig[gpu.mig]}"
        for gpu in machine.gpus
    ]
    printed = put(root / "printed.csv", "".join(f"{row}\n" for row in rows))
    program(root / "bin/nvidia-smi", machine.smi or f"cat '{printed}'")


def by_proc(root: Path, machine: Machine) -> None:
    if machine.architecture == "aarch64":
        put(root / "proc/driver/nvidia/version", MODULE_OF_JETSON.format(machine.driver))
    elif machine.driver and machine.on_bus:
        put(root / "proc/driver/nvidia/version", MODULE.format(machine.driver))
        for gpu in machine.gpus:
            address = gpu.address[4:].lower()
            told = f"Model: \t\t {gpu.name}\nIRQ:   \t\t 185\nBus Location: \t {address}\n"
            put(root / "proc/driver/nvidia/gpus" / address / "information", told)


def by_sys(root: Path, machine: Machine) -> None:
    if machine.driver and machine.on_bus:
        put(root / "sys/module/nvidia/version", f"{machine.driver}\n")
        for gpu in machine.gpus:
            pci(root, gpu.address[4:].lower(), f"0x{gpu.id >> 16:04x}")


WAYS: dict[str, Callable[[Path, Machine], str | None]] = {
    "NVML": by_nvml,
    "nvidia-smi": by_smi,
    "/proc": by_proc,
    "/sys": by_sys,
}

_A100 = "NVIDIA A100-SXM4-80GB 8.0 80 GiB 10de:20b2"
_LAPTOP = "NVIDIA GeForce RTX 3070 Laptop GPU 8.6 8 GiB 10de:249d"
_GTX = "NVIDIA GeForce GTX 1660 Ti 7.5 6 GiB 10de:2182"
_ORIN_BOARD = ["NVIDIA Jetson AGX Orin Developer Kit 8.7"]
# The driver, or what is said in its place; name, capability, memory, PCI id and `split` of each GPU, likewise.
TOLD: dict[tuple[str, str], tuple[str, list[str] | str]] = {
    ("server", "NVML"): ("535.183.01", [_A100, _A100]),
    ("server", "nvidia-smi"): ("535.183.01", [_A100, _A100]),
    ("server", "/proc"): ("535.183.01", ["NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"]),
    ("server", "/sys"): ("535.183.01", ["10de:20b2", "10de:20b2"]),
    ("laptop", "NVML"): ("550.54.15", [_LAPTOP]),
    ("laptop", "nvidia-smi"): ("550.54.15", [_LAPTOP]),
    ("laptop", "/proc"): ("550.54.15", ["NVIDIA GeForce RTX 3070 Laptop GPU"]),
    ("laptop", "/sys"): ("550.54.15", ["10de:249d"]),
    ("wsl2", "NVML"): ("571.96", [_LAPTOP]),
    ("wsl2", "nvidia-smi"): ("571.96", [_LAPTOP]),
    ("wsl2", "/proc"): ("/proc/driver/nvidia/version: No such file", "under WSL, it does not show the GPU"),
    ("wsl2", "/sys"): ("/sys/module/nvidia/version: No such file", "under WSL, it does not show the GPU"),
    ("jetson", "NVML"): ("540.4.0", ["Orin (nvgpu) 8.7"]),
    ("jetson", "nvidia-smi"): ("540.4.0", ["Orin (nvgpu) 8.7"]),
    ("jetson", "/proc"): ("540.4.0", _ORIN_BOARD),
    ("jetson", "/sys"): ("/sys/module/nvidia/version: No such file", _ORIN_BOARD),
    ("container", "NVML"): ("NVML: Driver Not Loaded", []),
    ("container", "nvidia-smi"): ("nvidia-smi: no driver version in `NVIDIA-SMI has failed", []),
    ("container", "/proc"): ("/proc/driver/nvidia/version: No such file", []),
    ("container", "/sys"): ("/sys/module/nvidia/version: No such file", []),
    ("two", "NVML"): ("580.65.06", [_LAPTOP, _GTX]),
    ("two", "nvidia-smi"): ("580.65.06", [_LAPTOP, _GTX]),
    ("two", "/proc"): ("580.65.06", ["NVIDIA GeForce RTX 3070 Laptop GPU", "NVIDIA GeForce GTX 1660 Ti"]),
    ("two", "/sys"): ("580.65.06", ["10de:249d", "10de:2182"]),
    ("mismatch", "NVML"): ("NVML: RM has detected an NVML/RM version mismatch", "version mismatch"),
    ("mismatch", "nvidia-smi"): ("nvidia-smi: no driver version in `Failed to initialize NVML", "Failed to initialize"),
    ("mismatch", "/proc"): ("570.133.20", ["NVIDIA GeForce GTX 1660 Ti"]),
    ("mismatch", "/sys"): ("570.133.20", ["10de:2182"]),
    ("mig", "NVML"): ("535.183.01", [f"{_A100} split"]),
    ("mig", "nvidia-smi"): ("535.183.01", [f"{_A100} split"]),
    ("mig", "/proc"): ("535.183.01", ["NVIDIA A100-SXM4-80GB"]),
    ("mig", "/sys"): ("535.183.01", ["10de:20b2"]),
}


def test_every_machine_is_seen_every_way() -> None:
    assert set(TOLD) == {(machine, way) for machine in MACHINES for way in WAYS}


@each("name, way", TOLD)
def test_what_each_way_tells(name: str, way: str, tmp_path: Path) -> None:
    driver, gpus = TOLD[name, way]
    machine = MACHINES[name]
    machine.around(tmp_path)
    library = WAYS[way](tmp_path, machine) or "libtenv-has-no-such-library.so.1"
    here = places(tmp_path, library=library, machine=machine.architecture)
    found = collect(here, tmp_path / "envs")
    if isinstance(found.driver, Missing):
        assert driver in found.driver.reason
    else:
        assert str(found.driver.value) == driver
        assert way in found.driver.origin
    if isinstance(gpus, str):
        assert isinstance(found.gpus, Missing)
        assert gpus in found.gpus.reason
    else:
        assert isinstance(found.gpus, Fact)
        assert [
            " ".join(
                filter(
                    None,
                    [
                        gpu.name,
                        str(gpu.compute_capability or ""),
                        f"{gpu.memory >> 30} GiB" if gpu.memory else "",
                        gpu.pci_id,
                        "split" if gpu.mig else "",
                    ],
                )
            )
            for gpu in found.gpus.value
        ] == gpus
    told = found.cuda.origin if isinstance(found.cuda, Fact) else None
    assert told == ("NVML" if way == "NVML" and machine.init == "return 0;" else None)
