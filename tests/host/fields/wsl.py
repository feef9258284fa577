from tenv.host.interface import OriginKind
from tests.host.builders import places, put
from tests.host.field_cases import Patch, Places, Present, Root


def windows(root: Root, _: Patch) -> Places:
    put(root / "proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n")
    return places(root)


CASES = [
    Present(windows, True, OriginKind.SYSTEM, ("yes",)),
    Present(lambda root, _: places(root), False, OriginKind.SYSTEM, ("no",)),
]
