from tenv.host.interface import OriginKind
from tests.host.builders import places
from tests.host.field_cases import Patch, Places, Present, Root
from tests.support.machine_trees import make_toolkit


def whole(root: Root, _: Patch) -> Places:
    make_toolkit(root / "usr/local/cuda")
    return places(root, CUDA_HOME=str(root / "usr/local/cuda"))


def gone(root: Root, _: Patch) -> Places:
    return places(root, CUDA_HOME=str(root / "no"))


def toolkit(**values: object) -> dict[str, object]:
    nothing = {"components": {}, "problems": [], "compiles": True, "home": "", "environment": "", "compilers": None}
    nothing |= {"patched": [], "absent": []}
    return {**nothing, **values}


NAMED = {"kind": "cuda-variable", "text": "CUDA_HOME"}
CASES = [
    Present(
        whole,
        [
            toolkit(
                path="ROOT/usr/local/cuda",
                found_by=[NAMED, {"kind": "default-folder", "text": "/usr/local/cuda"}],
                version="99.1.1",
                components={"cuda_cudart": "99.1.105", "cuda_nvcc": "99.1.105", "libcublas": "99.1.3.1"},
            )
        ],
        OriginKind.SEARCH,
        (
            "99.1.1  ROOT/usr/local/cuda, by CUDA_HOME, /usr/local/cuda",
            "  cuda_cudart 99.1.105, cuda_nvcc 99.1.105, libcublas 99.1.3.1",
        ),
    ),
    Present(
        gone,
        [
            toolkit(
                path="ROOT/no",
                found_by=[NAMED],
                version=None,
                absent=None,
                problems=[{"kind": "gone", "text": "CUDA_HOME names ROOT/no, which does not exist"}],
            )
        ],
        OriginKind.SEARCH,
        ("unknown  ROOT/no, by CUDA_HOME", "  problem: CUDA_HOME names ROOT/no, which does not exist"),
    ),
    Present(lambda root, _: places(root), [], OriginKind.SEARCH, ()),
]
