from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places, put
from tests.host.field_cases import Absent, Patch, Places, Present, Root


def docker(root: Root, _: Patch) -> Places:
    put(root / ".dockerenv")
    return places(root)


CASES = [
    Present(docker, "docker", OriginKind.SYSTEM, ("docker",)),
    Present(
        lambda root, _: places(root, variables={"APPTAINER_CONTAINER": "/x.sif"}),
        "apptainer",
        OriginKind.VARIABLE,
        ("apptainer",),
    ),
    Absent(lambda root, _: places(root), ReasonKind.NONE, "no sign of a container"),
]
