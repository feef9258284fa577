from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places, put
from tests.host.field_cases import Absent, Machine, Patch, Places, Present, Root


def said(text: str) -> Machine:
    return lambda root, _: places(root, CONDA_OVERRIDE_CUDA=text)


def no_library(root: Root, _: Patch) -> Places:
    put(root / "usr/lib64/libcuda.so.1", "not a library")
    return places(root)


CASES = [
    Present(said("12.4"), "12.4", OriginKind.OVERRIDE, ("12.4",)),
    Absent(said(""), ReasonKind.NO_CUDA, "CONDA_OVERRIDE_CUDA is empty"),
    Absent(said("new"), ReasonKind.NO_VERSION, "CONDA_OVERRIDE_CUDA is `new`"),
    Absent(lambda root, _: places(root), ReasonKind.NONE, "libcuda: the loader finds no libcuda.so.1"),
    Absent(no_library, ReasonKind.FAILED, "libcuda: "),
]
