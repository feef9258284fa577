import platform
from dataclasses import replace

from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places, put
from tests.host.field_cases import Absent, Machine, Patch, Places, Present, Root


def named(text: str, uname: str) -> Machine:
    def machine(root: Root, patch: Patch) -> Places:
        put(root / "proc/sys/kernel/hostname", text)
        patch.setattr(platform, "node", lambda: uname)
        return places(root)

    return machine


def of_slurm(root: Root, patch: Patch) -> Places:
    return replace(named("node7\n", "other")(root, patch), environ={"SLURMD_NODENAME": "gpu-07"})


CASES = [
    Present(of_slurm, "gpu-07", OriginKind.VARIABLE, ("gpu-07",)),
    Present(named("node7\n", "other"), "node7", OriginKind.SYSTEM, ("node7",)),
    Present(named("\n", "node8"), "node8", OriginKind.SYSTEM, ("node8",)),
    Absent(named("", ""), ReasonKind.NONE, "the system has no name"),
]
