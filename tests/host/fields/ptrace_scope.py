from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places, put
from tests.host.field_cases import Absent, Machine, Patch, Places, Present, Root


def scope(text: str) -> Machine:
    def machine(root: Root, _: Patch) -> Places:
        put(root / "proc/sys/kernel/yama/ptrace_scope", text)
        return places(root)

    return machine


CASES = [
    Present(scope("1\n"), 1, OriginKind.SYSTEM, ("scope 1",)),
    Absent(scope("x"), ReasonKind.UNREADABLE, "ptrace_scope holds `x`"),
    Absent(lambda root, _: places(root), ReasonKind.NONE, "ptrace_scope: No such file or directory"),
]
