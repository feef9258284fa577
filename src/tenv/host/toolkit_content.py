"""The parts of a toolkit: the missing ones, and the host compilers and functions in its headers.

The missing parts are searched where CMake's FindCUDAToolkit and nvcc search.

FindCUDAToolkit finds ``libX.so`` or ``libX.a`` in the toolkit's own library folders, then in the folders that CMake
always searches, then in ``stubs`` next to the former (Modules/FindCUDAToolkit.cmake, CMake 3.27 to 4.4).
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tenv.host.interface import Missing
from tenv.host.places import Places, exists, read
from tenv.host.report import CompilerLimits

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
"""The programs and files that nvcc uses, by name, with their place in a toolkit."""

_SYSTEM = ("usr/local/lib", "usr/lib64", "usr/lib", "lib64", "lib")
"""The folders that CMake always searches, without the folders of a processor family."""


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


FUNCTIONS = ("cospi", "cospif", "rsqrt", "rsqrtf", "sinpi", "sinpif")
"""The functions that both ``crt/math_functions.h`` and the ``<math.h>`` of glibc 2.41 and later declare."""

_GCC = re.compile(r"^#if\s+\(?__GNUC__\s*>\s*(\d+)", re.MULTILINE)
# At the start of a line: the bounds for the clang of NVIDIA's Grace are indented.
_CLANG = re.compile(r"^#if\s+\(*__clang_major__\s*(>=?)\s*(\d+)", re.MULTILINE)
_MSVC = re.compile(r"^#if\s+_MSC_VER\s*<\s*(\d+)\s*\|\|\s*_MSC_VER\s*>=\s*(\d+)", re.MULTILINE)
# The declaration that `<math.h>` must agree with: `extern … double rsqrt(double x) noexcept(true);`, or a macro there.
_DECLARED = re.compile(
    rf"^extern\b[^;(\n]*\b(?P<name>{'|'.join(FUNCTIONS)})\((?:double|float)\s+\w+\)(?P<specifier>[^;\n]*);",
    re.MULTILINE,
)


def parse_host_config(text: str, file: str) -> CompilerLimits | None:
    """Return the bounds outside which a ``crt/host_config.h`` has an ``#error``; None for other texts."""
    gcc, clang, msvc = _GCC.search(text), _CLANG.search(text), _MSVC.search(text)
    if not (gcc or clang or msvc):
        return None
    return CompilerLimits(
        file,
        gcc_max=int(gcc[1]) if gcc else None,
        clang_max=int(clang[2]) - (clang[1] == ">=") if clang else None,
        msvc_min=int(msvc[1]) if msvc else None,
        msvc_below=int(msvc[2]) if msvc else None,
    )


def compiler_limits(root: Path) -> CompilerLimits | None:
    """Return the bounds of the host compilers of the toolkit in a folder; None if no header has them."""
    for file in _headers(root, "host_config.h"):
        text = read(file)
        if not isinstance(text, Missing) and (found := parse_host_config(text, str(file))):
            return found
    return None


def parse_math_functions(text: str) -> tuple[str, ...]:
    """Return the functions that a ``crt/math_functions.h`` declares with an exception specification, as glibc does.

    Newer toolkits do so; older ones are patched by distributions or by hand.
    """
    return tuple(sorted({match["name"] for match in _DECLARED.finditer(text) if match["specifier"].strip()}))


def patched(root: Path) -> tuple[str, ...]:
    """Return the functions that the ``crt/math_functions.h`` of a toolkit declares as a newer glibc does."""
    for file in _headers(root, "math_functions.h"):
        text = read(file)
        if not isinstance(text, Missing):
            return parse_math_functions(text)
    return ()


def _headers(root: Path, name: str) -> Iterator[Path]:
    for folder in (root, *sorted(root.glob("targets/*"))):
        yield folder / "include" / "crt" / name
