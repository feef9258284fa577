"""Find the missing parts of a toolkit by searching where CMake's FindCUDAToolkit and nvcc search.

FindCUDAToolkit finds ``libX.so`` or ``libX.a`` in the toolkit's own library folders, then in the folders that CMake
always searches, then in ``stubs`` next to the former (Modules/FindCUDAToolkit.cmake, CMake 3.27 to 4.4).
"""

from collections.abc import Iterator
from pathlib import Path

from tenv.host.places import Places, exists

__all__ = ["HEADERS", "LIBRARIES", "PROGRAMS", "absent"]

LIBRARIES = (
    *("cudart", "cudart_static", "cudadevrt", "cublas", "cublasLt", "cufft", "curand", "cusparse", "cusolver"),
    *("nvrtc", "cufile", "cuda", "nvToolsExt"),
)
"""Libraries by their linker names; ``cuda`` is the driver's library, for which a toolkit has a stub."""

HEADERS = (
    *("cuda.h", "cuda_runtime.h", "crt/host_config.h", "cublas_v2.h", "cufft.h", "curand.h", "cusparse.h"),
    *("cusolverDn.h", "nvrtc.h", "cufile.h", "cuda/std/cstddef"),
)

PROGRAMS = {
    "ptxas": ("bin/ptxas*",),
    "cicc": ("nvvm/bin/cicc*", "bin/cicc*"),
    "libdevice": ("nvvm/libdevice/*.bc", "libdevice/*.bc"),
}
"""What nvcc calls and reads, by name, with its place in a toolkit."""

_SYSTEM = ("usr/local/lib", "usr/lib64", "usr/lib", "lib64", "lib")
"""The folders that CMake always searches, without those of a processor family."""


def absent(root: Path, home: Path, places: Places) -> tuple[str, ...]:
    """Return the parts that PyTorch builds search for and a toolkit lacks: ``libcublas``, ``cusparse.h``, ``ptxas``.

    Args:
        root: The toolkit's folder.
        home: The folder above its ``include`` and ``bin`` if it is another one.
        places: Where to look.
    """
    folders = list(_library_folders(home))
    system = [folder for name in _SYSTEM for folder in _with_family(places.at(name), places.machine)]
    stubs = [folder / "stubs" for folder in folders]
    libraries = [f"lib{name}" for name in LIBRARIES if not _has_library(name, (*folders, *system, *stubs))]
    headers = [name for name in HEADERS if not any(exists(folder / name) for folder in _include_folders(home))]
    programs = [name for name, patterns in PROGRAMS.items() if not _has_program(name, patterns, root, home, places)]
    return (*libraries, *headers, *programs)


def _library_folders(home: Path) -> Iterator[Path]:
    for pattern in ("lib64", "lib", "lib/x64", "targets/*/lib", "lib/*-linux-gnu*", "../../math_libs/*/lib64"):
        yield from sorted(home.glob(pattern))


def _include_folders(home: Path) -> Iterator[Path]:
    for pattern in (
        "include",
        "include/cccl",
        "targets/*/include",
        "targets/*/include/cccl",
        "../../math_libs/*/include",
    ):
        yield from sorted(home.glob(pattern))


def _with_family(folder: Path, machine: str) -> tuple[Path, ...]:
    return folder / f"{machine}-linux-gnu", folder


def _has_library(name: str, folders: tuple[Path, ...]) -> bool:
    files = (f"lib{name}.so", f"lib{name}.a", f"{name}.lib")
    return any(exists(folder / file) for folder in folders for file in files)


def _has_program(name: str, patterns: tuple[str, ...], root: Path, home: Path, places: Places) -> bool:
    found = (path for folder in (root, home) for pattern in patterns for path in folder.glob(pattern))
    on_path = name == "ptxas" and places.find(name) is not None  # nvcc calls these if it has none of its own
    return on_path or any(exists(path) for path in found)
