from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places, program
from tests.host.field_cases import Absent, Machine, Patch, Places, Present, Root

ANSWER = "echo 'Intel(R) oneAPI DPC++/C++ Compiler 2025.3.1 (2025.3.1.20251023)'"


def machine(where: str, script: str) -> Machine:
    def make(root: Root, _: Patch) -> Places:
        program(root / where / "icpx", script)
        return places(root)

    return make


CASES = [
    Present(machine("bin", ANSWER), "2025.3.1", OriginKind.SEARCH, ("2025.3.1",)),
    Present(machine("opt/intel/oneapi/compiler/latest/bin", ANSWER), "2025.3.1", OriginKind.SEARCH, ("2025.3.1",)),
    Absent(machine("bin", "echo error: no license"), ReasonKind.UNREADABLE, "has no version"),
    Absent(lambda root, _: places(root), ReasonKind.NONE, "not found on PATH"),
]
