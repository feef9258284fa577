from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places
from tests.host.field_cases import Absent, Patch, Places, Present, Root

USUAL = "opt/intel/oneapi/compiler/latest"


def usual(root: Root, _: Patch) -> Places:
    (root / USUAL).mkdir(parents=True)
    return places(root)


def named(root: Root, _: Patch) -> Places:
    (root / "intel").mkdir()
    return places(root, variables={"CMPLR_ROOT": str(root / "intel")})


CASES = [
    Present(usual, f"/{USUAL}", OriginKind.SEARCH, (f"/{USUAL}",)),
    Present(named, "ROOT/intel", OriginKind.VARIABLE, ("ROOT/intel",)),
    Absent(
        lambda root, _: places(root, variables={"CMPLR_ROOT": "/opt/gone"}), ReasonKind.FAILED, "which is no folder"
    ),
    Absent(lambda root, _: places(root), ReasonKind.NONE, "does not exist"),
]
