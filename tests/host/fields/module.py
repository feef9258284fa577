from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places, put
from tests.host.field_cases import Absent, Machine, Patch, Places, Present, Root

PROC = "/proc/driver/nvidia/version"
GCC = "GCC version:  gcc version 12.3.0\n"


def told(line: str) -> Machine:
    """A machine whose loaded driver says a line of itself."""

    def machine(root: Root, _: Patch) -> Places:
        put(root / PROC.lstrip("/"), f"NVRM version: {line}\n{GCC}")
        return places(root)

    return machine


OPEN = "NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder@U22)"
CLOSED = "NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024"
CASES = [
    Present(told(OPEN), "open", OriginKind.KERNEL, ("open",)),
    Present(told(CLOSED), "proprietary", OriginKind.KERNEL, ("proprietary",)),
    Absent(told("something else"), ReasonKind.UNREADABLE, "has no kernel module"),
    Absent(lambda root, _: places(root), ReasonKind.NONE, "No such file"),
]
