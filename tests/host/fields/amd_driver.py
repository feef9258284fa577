from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places, put
from tests.host.field_cases import Absent, Patch, Places, Present, Root


def dkms(root: Root, _: Patch) -> Places:
    put(root / "sys/module/amdgpu/version", "6.14.14\n")
    return places(root)


def of_kernel(root: Root, _: Patch) -> Places:
    put(root / "sys/module/amdgpu/initstate", "live\n")
    return places(root)


def odd(root: Root, _: Patch) -> Places:
    put(root / "sys/module/amdgpu/version", "unknown\n")
    return places(root)


CASES = [
    Present(dkms, "6.14.14", OriginKind.KERNEL, ("6.14.14",)),
    Absent(of_kernel, ReasonKind.NONE, "kernel's own module"),
    Absent(odd, ReasonKind.UNREADABLE, "has no version"),
    Absent(lambda root, _: places(root), ReasonKind.NONE, "not loaded"),
]
