import os

from tenv.host.interface import OriginKind
from tests.host.builders import places, put
from tests.host.field_cases import Patch, Places, Present, Root


def whole(root: Root, patch: Patch) -> Places:
    patch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    return places(root)


def limited(root: Root, patch: Patch) -> Places:
    put(root / "proc/self/cgroup", "0::/job\n")
    put(root / "sys/fs/cgroup/job/cpu.max", "250000 100000")
    return whole(root, patch)


CASES = [
    Present(whole, 16, OriginKind.SYSTEM, ("16",)),
    Present(limited, 3, OriginKind.CGROUP, ("3",)),
]
