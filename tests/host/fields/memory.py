from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places, put
from tests.host.field_cases import Absent, Patch, Places, Present, Root


def whole(root: Root, _: Patch) -> Places:
    put(root / "proc/meminfo", "MemTotal:       16777216 kB\n")
    return places(root)


def limited(root: Root, _: Patch) -> Places:
    put(root / "proc/self/cgroup", "0::/job\n")
    put(root / "sys/fs/cgroup/job/memory.max", str(4 << 30))
    return whole(root, _)


CASES = [
    Present(whole, 16 << 30, OriginKind.SYSTEM, ("16.0 GiB",)),
    Present(limited, 4 << 30, OriginKind.CGROUP, ("4.0 GiB",)),
    Absent(lambda root, _: places(root), ReasonKind.NONE, "/proc/meminfo has no MemTotal"),
]
