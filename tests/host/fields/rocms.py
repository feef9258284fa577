from typing import Any

from tenv.host.interface import OriginKind
from tests.host.builders import places
from tests.host.field_cases import Machine, Patch, Places, Present, Root
from tests.support.machine_trees import make_debian_rocm, make_rocm

AMD: dict[str, Any] = {
    "path": "ROOT/opt/rocm-6.4.3",
    "found_by": [{"kind": "folder", "text": "/opt/rocm-6.4.3"}],
    "version": "6.4.3",
    "hip": "6.4.43484",
    "derived": False,
    "parts": {"rocm-core": "6.4.3", "hip": "6.4.43484", "hipblaslt": "0.12.1", "miopen": ""},
    "clang": "ROOT/opt/rocm-6.4.3/lib/llvm/bin/clang++",
    "bitcode": "ROOT/opt/rocm-6.4.3/amdgcn/bitcode",
    "compiles": ["gfx90a", "gfx942", "gfx1100"],
    "kernels": ["gfx90a"],
    "problems": [],
    "environment": "",
}
DEBIAN: dict[str, Any] = {
    **AMD,
    "path": "ROOT/usr",
    "found_by": [
        {"kind": "folder", "text": "/usr/bin/hipcc"},
        {"kind": "folder", "text": "/usr/lib/x86_64-linux-gnu/cmake/hip"},
    ],
    "version": "5.7",
    "hip": "5.7.31921",
    "derived": True,
    "parts": {"hip": "5.7.31921"},
    "clang": "ROOT/usr/lib/llvm-17/bin/clang++",
    "bitcode": "ROOT/usr/lib/llvm-17/lib/clang/17/amdgcn/bitcode",
    "kernels": [],
}


def amd(root: Root, _: Patch) -> Places:
    make_rocm(root / "opt/rocm-6.4.3")
    return places(root)


def debian(root: Root, _: Patch) -> Places:
    make_debian_rocm(root)
    return places(root)


def named(folder: str) -> Machine:
    def make(root: Root, _: Patch) -> Places:
        return places(root, variables={"ROCM_PATH": folder})

    return make


GONE = {
    **AMD,
    "path": "/opt/gone",
    "found_by": [{"kind": "rocm-variable", "text": "ROCM_PATH"}],
    **dict.fromkeys(("version", "hip", "compiles")),
    **dict.fromkeys(("clang", "bitcode"), ""),
    "parts": {},
    "kernels": [],
    "problems": ["ROCM_PATH names /opt/gone, which is no folder"],
}
CASES = [
    Present(
        amd,
        [AMD],
        OriginKind.SEARCH,
        (
            "6.4.3  ROOT/opt/rocm-6.4.3, by /opt/rocm-6.4.3",
            "  rocm-core 6.4.3, hip 6.4.43484, hipblaslt 0.12.1, miopen",
            "  compiles for gfx90a, gfx942, gfx1100",
        ),
    ),
    Present(
        debian,
        [DEBIAN],
        OriginKind.SEARCH,
        (
            "5.7 (by HIP)  ROOT/usr, by /usr/bin/hipcc, /usr/lib/x86_64-linux-gnu/cmake/hip",
            "  hip 5.7.31921",
            "  compiles for gfx90a, gfx942, gfx1100",
        ),
    ),
    Present(
        named("/opt/gone"),
        [GONE],
        OriginKind.SEARCH,
        ("of unknown release  /opt/gone, by ROCM_PATH", "  ROCM_PATH names /opt/gone, which is no folder"),
    ),
    Present(lambda root, _: places(root), [], OriginKind.SEARCH, ()),
]
