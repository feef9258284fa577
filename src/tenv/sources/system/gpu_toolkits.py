"""Resolves the CUDA toolkit and ROCm from the system.

The CUDA toolkit comes from an administrator, a distribution or an environment module; ROCm from AMD's packages, a
distribution, or the wheels of ``rocm-sdk``.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from tenv.host import rocms, toolkits
from tenv.host.choice import choose_rocm, choose_toolkit
from tenv.host.report import Rocm, Toolkit
from tenv.host.toolkit_ways import LOOKED_AT
from tenv.sources.system.interface import Lack, Tool, ToolRequest, first_that_is, patterns

_PROGRAMS = ("bin/nvcc*", "bin/cicc", "bin/ptxas", "bin/fatbinary", "bin/cudafe++", "bin/nvlink", "nvvm/bin/cicc")
_APART = ("bin/ptxas", "bin/fatbinary", "bin/cudafe++", "bin/nvlink")
_HEADERS = ("include/cuda.h", "include/cuda_runtime_api.h", "include/crt/*.h", "include/crt/*.hpp")
_OTHERS = ("version.json", "version.txt", "nvvm/libdevice/*.bc", "libdevice/*.bc")
_LIBRARIES = ("libcudart.so.*", "libcudart_static.a", "libcudadevrt.a")
_LARGE = tuple(
    f"lib{name}.so.*"
    for name in ("cublas", "cublasLt", "cufft", "curand", "cusolver", "cusparse", "nvrtc", "nvJitLink", "cupti")
)
_WATCHED = ("nvcc", "cicc", "ptxas", "version.json", "version.txt", "cuda_runtime_api.h", "host_config.h")


def find_toolkit(wanted: ToolRequest) -> Tool | Lack:
    """Return the best CUDA toolkit of the system."""
    choice = choose_toolkit(toolkits.probe(wanted.places).value, wanted.accepted, wanted.kept)
    if choice.taken is None:
        return wanted.lack(choice.refused, LOOKED_AT, _install(wanted))
    return _tool(wanted, choice.taken)


def _install(wanted: ToolRequest) -> str:
    """Return the command that installs a matching release; NVIDIA's packages have it in their names."""
    exact = wanted.accepted.text.strip(" =").removesuffix(".*")
    parts = exact.split(".")
    if len(parts) > 1 and all(part.isdigit() for part in parts):
        name = f"cuda-toolkit-{parts[0]}-{parts[1]}"
        return f"apt install {name} (NVIDIA's repository: developer.nvidia.com/cuda-downloads), or name it in CUDA_HOME"
    return "apt install nvidia-cuda-toolkit (Debian, Ubuntu) or cuda-toolkit (NVIDIA), or name it in CUDA_HOME"


def _tool(wanted: ToolRequest, toolkit: Toolkit) -> Tool:
    root = Path(toolkit.path)
    home = Path(toolkit.home) if toolkit.home else root
    roots = (root,) if home == root else (root, home)
    parts = (*_PROGRAMS, *_OTHERS)
    files = [*patterns(root, *parts), *patterns(home, *_HEADERS)]
    if home != root:
        files += patterns(home, "bin/nvcc", *_APART)
    folders = _library_folders(home)
    files += [path for folder in folders for path in patterns(folder, *_LIBRARIES)]
    large = [path for folder in folders for path in patterns(folder, *_LARGE)]
    nvcc = first_that_is(*(one / "bin" / name for one in reversed(roots) for name in ("nvcc", "nvcc.exe")))
    return wanted.tool(
        root,
        toolkit.version,
        toolkit.ways,
        roles={"home": str(home), "nvcc": str(nvcc)},
        notes=tuple(_notes(wanted, root, home, toolkit)),
        files=tuple(dict.fromkeys(files)),
        large=tuple(dict.fromkeys(large)),
        watched=tuple(dict.fromkeys(path for path in files if path.name in _WATCHED)),
    )


def _notes(wanted: ToolRequest, root: Path, home: Path, toolkit: Toolkit) -> Iterator[str]:
    other = wanted.places.find("ptxas")
    if home != root and other and os.path.realpath(other) != os.path.realpath(home / "bin" / "ptxas"):
        yield f"{toolkit.path}: its nvcc calls the first ptxas on PATH, which belongs to another toolkit: {other}"
    yield from (f"{toolkit.path}: {problem.text}" for problem in toolkit.problems)
    nvcc = root / "bin" / "nvcc"
    if nvcc.is_file():
        with nvcc.open("rb") as file:
            if file.read(2) == b"#!":
                yield f"{nvcc} is a script: tenv watches it and the programs beside it, no others that it calls"


def _library_folders(home: Path) -> list[Path]:
    """Return the library folders, each once."""
    found = (home / "lib64", *home.glob("targets/*/lib"), *home.glob("lib/*-linux-gnu*"), home / "lib" / "x64")
    folders = [folder for folder in found if folder.is_dir()]
    if (home / "lib").is_dir() and not folders:
        folders = [home / "lib"]
    return list({os.path.realpath(folder): folder for folder in folders}.values())


_INSTALL_ROCM = "apt install rocm-dev rocm-libs (AMD's repository), or hipcc (Debian, Ubuntu), or name it in ROCM_PATH"
_ROCM_FILES = (
    *(".info/version*", "include/rocm-core/rocm_version.h", "include/rocm_version.h", "include/hip/*.h"),
    *("include/hip/amd_detail/*.h", "bin/hipcc*", "bin/hipconfig*", "bin/hipify-perl", "share/hip/version"),
)
_ROCM_LIBRARIES = tuple(
    f"lib{name}.so.*"
    for name in (
        *("amdhip64", "hiprtc", "hsa-runtime64", "amd_comgr", "MIOpen", "rocblas", "hipblas", "hipblaslt", "rccl"),
        *("rocfft", "hipfft", "rocrand", "hiprand", "rocsparse", "hipsparse", "rocsolver", "hipsolver"),
    )
)
_ROCM_WATCHED = ("version", "rocm_version.h", "hip_version.h", "hipcc")


def find_rocm(wanted: ToolRequest) -> Tool | Lack:
    """Return the best ROCm of the system."""
    choice = choose_rocm(rocms.probe(wanted.places).value, wanted.accepted, wanted.kept)
    if choice.taken is None:
        return wanted.lack(choice.refused, rocms.LOOKED_AT, _INSTALL_ROCM)
    return _rocm_tool(wanted, choice.taken)


def _rocm_tool(wanted: ToolRequest, found: Rocm) -> Tool:
    root, clang, bitcode = Path(found.path), Path(found.clang), Path(found.bitcode)
    packages = [folder for name, _ in found.parts for folder in rocms.cmake_folders(root, name)]
    files = patterns(root, *_ROCM_FILES)
    files += [path for folder in packages for path in patterns(folder, "*ersion.cmake", "*onfig.cmake")]
    files += patterns(bitcode, "*.bc") if found.bitcode else []
    programs = patterns(clang.parent, "clang", "clang++", "ld.lld", "lld", "clang-offload-bundler")
    libraries = [path for folder in rocms.library_folders(root) for path in patterns(folder, *_ROCM_LIBRARIES)]
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
        notes=tuple(_rocm_notes(found)),
        files=tuple(dict.fromkeys(files)),
        large=tuple(dict.fromkeys([*programs, *libraries])),
        watched=tuple(dict.fromkeys(path for path in files if path.name in _ROCM_WATCHED)),
    )


def _rocm_notes(found: Rocm) -> Iterator[str]:
    parts = ", ".join(f"{name} {text}".strip() for name, text in found.parts)
    yield f"{found.path}: its parts are {parts or 'without CMake packages'}"
    if found.compiles:
        yield f"{found.clang} compiles for {', '.join(found.compiles)}"
    yield "tenv's rules about ROCm follow tables and public reports; no AMD GPU has run them"
