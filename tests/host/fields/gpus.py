from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import pci, places, program, put
from tests.host.field_cases import Absent, Patch, Places, Present, Root

L4 = "NVIDIA L4, 23034, 00000000:01:00.0, 0x27B810DE, 8.9, Enabled"


def asked(root: Root, _: Patch) -> Places:
    program(root / "bin/nvidia-smi", f"echo '580.65.06, {L4}'")
    return places(root)


def on_bus(root: Root, _: Patch) -> Places:
    pci(root, "0000:02:00.0", "0x2182")
    return places(root)


def none(root: Root, _: Patch) -> Places:
    pci(root, "0000:00:02.0", "0x3e92", vendor="0x8086")
    return places(root)


def windows(root: Root, _: Patch) -> Places:
    put(root / "proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n")
    return none(root, _)


def gpu(**values: object) -> dict[str, object]:
    nothing = {"name": "", "compute_capability": None, "memory": None, "pci_id": "", "pci_address": ""}
    return {**nothing, "mig": False, "fabric": None, **values}


CASES = [
    Present(
        asked,
        [
            gpu(
                name="NVIDIA L4",
                compute_capability="8.9",
                memory=23034 << 20,
                pci_id="10de:27b8",
                pci_address="0000:01:00.0",
                mig=True,
            )
        ],
        OriginKind.NVIDIA_SMI,
        ("NVIDIA L4, compute capability 8.9, 22.5 GiB, 10de:27b8, at 0000:01:00.0, split into instances (MIG)",),
    ),
    Present(
        on_bus,
        [gpu(pci_id="10de:2182", pci_address="0000:02:00.0")],
        OriginKind.PCI,
        ("a GPU without a name, 10de:2182, at 0000:02:00.0",),
    ),
    Present(none, [], OriginKind.PCI, ()),
    Absent(windows, ReasonKind.HIDDEN, "under WSL, it does not show the GPU"),
    Absent(lambda root, _: places(root), ReasonKind.HIDDEN, "/sys/bus/pci/devices: no such folder"),
]
