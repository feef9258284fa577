from tenv.host.interface import OriginKind
from tests.host.builders import places, program, put
from tests.host.field_cases import Patch, Places, Present, Root


def debian(root: Root, _: Patch) -> Places:
    program(root / "bin/g++-12", "echo 12.2.0")
    (root / "bin/g++").symlink_to("g++-12")
    return places(root, CXX="g++-12")


def windows(root: Root, _: Patch) -> Places:
    folder = root / "MSVC/14.44.35207"
    put(folder / "bin/Hostx64/x64/cl.exe")
    return places(root, VCToolsInstallDir=str(folder))


GXX, CL = "ROOT/bin/g++-12", "ROOT/MSVC/14.44.35207/bin/Hostx64/x64/cl.exe"
CASES = [
    Present(
        debian,
        [
            {
                "kind": "g++",
                "path": GXX,
                "version": "12.2.0",
                "default": True,
                "found_by": [{"kind": "cxx", "text": "CXX"}, {"kind": "path", "text": "g++, g++-12 on PATH"}],
                "nvcc": False,
                "glibcxx": None,
            }
        ],
        OriginKind.SEARCH,
        (f"g++ 12.2.0  {GXX}, by CXX; g++, g++-12 on PATH, default",),
    ),
    Present(
        windows,
        [
            {
                "kind": "msvc",
                "path": CL,
                "version": "19.44.35207",
                "default": True,
                "found_by": [{"kind": "prompt", "text": "VCToolsInstallDir"}],
                "nvcc": False,
                "glibcxx": None,
            }
        ],
        OriginKind.SEARCH_MSVC,
        (f"msvc 19.44.35207  {CL}, by VCToolsInstallDir, default",),
    ),
    Present(lambda root, _: places(root), [], OriginKind.SEARCH, ()),
]
