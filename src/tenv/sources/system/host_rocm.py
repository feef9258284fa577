"""Resolves ROCm from the system: AMD's packages, a distribution's, or the wheels of ``rocm-sdk``."""

import os
from collections.abc import Iterator
from pathlib import Path

from tenv.host import rocms
from tenv.host.choice import choose_rocm
from tenv.host.report import Rocm
from tenv.sources.system.interface import Lack, Tool, ToolRequest, patterns

_INSTALL = "apt install rocm-dev rocm-libs (AMD's repository), or hipcc (Debian, Ubuntu), or name it in ROCM_PATH"
_FILES = (
    *(".info/version*", "include/rocm-core/rocm_version.h", "include/rocm_version.h", "include/hip/*.h"),
    *("include/hip/amd_detail/*.h", "bin/hipcc*", "bin/hipconfig*", "bin/hipify-perl", "share/hip/version"),
)
_LARGE = tuple(
    f"lib{name}.so.*"
    for name in (
        *("amdhip64", "hiprtc", "hsa-runtime64", "amd_comgr", "MIOpen", "rocblas", "hipblas", "hipblaslt", "rccl"),
        *("rocfft", "hipfft", "rocrand", "hiprand", "rocsparse", "hipsparse", "rocsolver", "hipsolver"),
    )
)
_WATCHED = ("version", "rocm_version.h", "hip_version.h", "hipcc")


def find_rocm(wanted: ToolRequest) -> Tool | Lack:
    """Return the best ROCm of the system."""
    choice = choose_rocm(rocms.probe(wanted.places).value, wanted.accepted, wanted.kept)
    if choice.taken is None:
        return wanted.lack(choice.refused, rocms.LOOKED_AT, _INSTALL)
    return _tool(wanted, choice.taken)


def _tool(wanted: ToolRequest, found: Rocm) -> Tool:
    root, clang, bitcode = Path(found.path), Path(found.clang), Path(found.bitcode)
    packages = [folder for name, _ in found.parts for folder in rocms.cmake_folders(root, name)]
    files = patterns(root, *_FILES)
    files += [path for folder in packages for path in patterns(folder, "*ersion.cmake", "*onfig.cmake")]
    files += patterns(bitcode, "*.bc") if found.bitcode else []
    programs = patterns(clang.parent, "clang", "clang++", "ld.lld", "lld", "clang-offload-bundler")
    libraries = [path for folder in rocms.library_folders(root) for path in patterns(folder, *_LARGE)]
    return wanted.tool(
        root,
        found.version,
        found.ways,
        roles={
            "home": found.path,
            "clang": str(clang.parent),
            "bitcode": found.bitcode,
            "compiles": os.pathsep.join(found.compiles or ()),
        },
        notes=tuple(_notes(found)),
        files=tuple(dict.fromkeys(files)),
        large=tuple(dict.fromkeys([*programs, *libraries])),
        watched=tuple(dict.fromkeys(path for path in files if path.name in _WATCHED)),
    )


def _notes(found: Rocm) -> Iterator[str]:
    parts = ", ".join(f"{name} {text}".strip() for name, text in found.parts)
    yield f"{found.path}: its parts are {parts or 'without CMake packages'}"
    if found.compiles:
        yield f"{found.clang} compiles for {', '.join(found.compiles)}"
    yield "tenv's rules about ROCm follow tables and public reports; no AMD GPU has run them"
