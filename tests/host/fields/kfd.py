import os

from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places, put
from tests.host.field_cases import Absent, Machine, Patch, Places, Present, Root


def device(*, opens: bool) -> Machine:
    def make(root: Root, patch: Patch) -> Places:
        put(root / "dev/kfd", "")
        patch.setattr(os, "access", lambda path, mode: opens and mode == os.R_OK | os.W_OK)
        patch.setattr("tenv.host.amd._group", lambda _: "render")
        return places(root)

    return make


def opens(*, yes: bool) -> dict[str, object]:
    return {"opens": yes, "group": "render"}


CASES = [
    Present(device(opens=True), opens(yes=True), OriginKind.KERNEL, ("this user may open /dev/kfd (group render)",)),
    Present(
        device(opens=False), opens(yes=False), OriginKind.KERNEL, ("this user may not open /dev/kfd (group render)",)
    ),
    Absent(lambda root, _: places(root), ReasonKind.NONE, "/dev/kfd: No such file"),
]
