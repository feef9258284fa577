import os
from types import SimpleNamespace

from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places, put
from tests.host.field_cases import Absent, Patch, Places, Present, Root


def nfs(root: Root, patch: Patch) -> Places:
    put(root / "proc/self/mountinfo", "27 1 254:0 / / rw,relatime - nfs4 server:/ rw\n")
    patch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=3, f_frsize=1 << 30))
    return places(root)


def broken(root: Root, patch: Patch) -> Places:
    def fail(_: object) -> None:
        raise OSError("stale file handle")

    patch.setattr(os, "statvfs", fail)
    return places(root)


CASES = [
    Present(
        nfs,
        {"path": "ROOT/envs", "free": 3 << 30, "file_system": "nfs4"},
        OriginKind.SYSTEM,
        ("3.0 GiB free on nfs4  ROOT/envs",),
    ),
    Absent(broken, ReasonKind.FAILED, "can't be queried: stale file handle"),
]
