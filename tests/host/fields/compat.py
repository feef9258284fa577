from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places, put
from tests.host.field_cases import Absent, Machine, Patch, Places, Present, Root

LIBRARY = "libcuda.so.570.86.10"


def library(folder: str, name: str = LIBRARY, driver: str = "535.183.01") -> Machine:
    """A machine whose loader is led to a libcuda in a folder."""

    def machine(root: Root, _: Patch) -> Places:
        put(root / "sys/module/nvidia/version", f"{driver}\n")
        put(root / folder / name)
        if name != "libcuda.so.1":
            (root / folder / "libcuda.so.1").symlink_to(name)
        return places(root, LD_LIBRARY_PATH=str(root / folder))

    return machine


def found(folder: str, kind: str) -> dict[str, str]:
    return {"path": f"ROOT/{folder}/{LIBRARY}", "version": "570.86.10", "kind": kind}


COMPAT, LEFT = "usr/local/cuda-12.8/compat", "usr/lib64"
CASES = [
    Present(library(COMPAT), found(COMPAT, "cuda-compat"), OriginKind.LOADER, (f"570.86.10  ROOT/{COMPAT}/{LIBRARY}",)),
    Present(library(LEFT), found(LEFT, "other"), OriginKind.LOADER, (f"570.86.10  ROOT/{LEFT}/{LIBRARY}",)),
    Absent(library(LEFT, driver="570.86.10"), ReasonKind.DRIVERS_OWN, "is the driver's own"),
    Absent(library(COMPAT, "libcuda.so.1"), ReasonKind.UNREADABLE, "no file next to it has its version"),
    Absent(lambda root, _: places(root), ReasonKind.NONE, "the loader finds no libcuda.so.1"),
]
