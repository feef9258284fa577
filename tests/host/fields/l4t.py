from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places, put
from tests.host.field_cases import Absent, Patch, Places, Present, Root

RELEASE = "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64"


def jetson(root: Root, _: Patch) -> Places:
    put(root / "etc/nv_tegra_release", f"{RELEASE}\n")
    return places(root)


def other(root: Root, _: Patch) -> Places:
    put(root / "etc/nv_tegra_release", "KERNEL_VARIANT=oot\n")
    return places(root)


CASES = [
    Present(jetson, "36.4.3", OriginKind.SYSTEM, ("36.4.3",)),
    Absent(other, ReasonKind.UNREADABLE, "has no release"),
    Absent(lambda root, _: places(root), ReasonKind.NONE, "No such file"),
]
