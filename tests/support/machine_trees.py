"""Toolkits and compilers of a machine, made of small files: enough for what tenv asks of them."""

from pathlib import Path

from tenv.host.toolkit_content import HEADERS, LIBRARIES
from tests.host.builders import program, put

__all__ = [
    "add_library",
    "make_cmake_package",
    "make_debian",
    "make_debian_rocm",
    "make_gcc",
    "make_mpi",
    "make_rocm",
    "make_toolkit",
]

_SAYS = "Cuda compilation tools, release {release}, V{release}.105"


def make_toolkit(root: Path, release: str = "99.1", *, described: str = "", headers: str = "") -> Path:
    """Make a CUDA toolkit as NVIDIA installs it.

    Args:
        root: Its folder.
        release: What its nvcc says.
        described: What its ``version.json`` says; the release's first update when empty.
        headers: The release that its headers say; that of nvcc when empty.
    """
    major, minor = (headers or release).split(".")
    put(root / "bin" / "nvcc.profile", "TOP = ..\n")
    program(root / "bin" / "nvcc", f"echo '{_SAYS.format(release=release)}'")
    for name in ("bin/ptxas", "bin/fatbinary", "bin/cudafe++", "bin/nvlink", "nvvm/bin/cicc"):
        program(root / name, f"echo {name}")
    _add_parts(root, root / "lib64")
    put(root / "nvvm" / "libdevice" / "libdevice.10.bc")
    put(root / "include" / "cuda_runtime_api.h", f"#define CUDART_VERSION {int(major) * 1000 + int(minor) * 10}\n")
    put(root / "include" / "crt" / "host_config.h", "/* limits */\n")
    put(root / "lib64" / f"libcudart.so.{release}.105", "cudart")
    put(root / "lib64" / f"libcublas.so.{release}.3.1", "cublas")
    said = described or f"{release}.1"
    put(root / "version.json", f'{{"cuda": {{"name": "CUDA SDK", "version": "{said}"}}}}')
    return root


def make_debian(root: Path, release: str = "99.1") -> Path:
    """Make a toolkit as Debian's packages lay it out, nvcc apart and the rest in ``/usr``, and return ``/usr``."""
    usr, home = root / "usr", root / "usr" / "lib" / "nvidia-cuda-toolkit"
    major, minor = release.split(".")
    script = (
        f'case "$1" in --dryrun) echo "#$ _HERE_={home}/bin" >&2 ;; *) echo "{_SAYS.format(release=release)}" ;; esac'
    )
    program(home / "bin" / "nvcc", script)
    program(home / "bin" / "cicc", "echo cicc")
    put(root / "etc" / "nvcc.profile")
    (home / "bin" / "nvcc.profile").symlink_to(root / "etc" / "nvcc.profile")
    put(home / "libdevice" / "libdevice.10.bc")
    _add_parts(usr, usr / "lib" / "x86_64-linux-gnu")
    program(usr / "bin" / "nvcc", f'exec {home}/bin/nvcc "$@"')
    program(usr / "bin" / "ptxas", "echo ptxas")
    put(usr / "include" / "cuda_runtime_api.h", f"#define CUDART_VERSION {int(major) * 1000 + int(minor) * 10}\n")
    put(usr / "lib" / "x86_64-linux-gnu" / f"libcudart.so.{release}.89")
    return usr


def _add_parts(root: Path, libraries: Path) -> None:
    """Add what builds look for in a toolkit, without numbers: links and headers of its development packages."""
    for name in LIBRARIES:
        ending = "a" if name in ("cudart_static", "cudadevrt") else "so"
        put((libraries / "stubs" if name == "cuda" else libraries) / f"lib{name}.{ending}")
    for name in HEADERS:
        put(root / "include" / name)


def make_gcc(folder: Path, version: str = "12.2.0", suffix: str = "", *, whole: bool = True) -> Path:
    """Make a gcc and a g++, with what they call or without, and return the g++."""
    parts = folder / "lib" / version
    for name in ("cc1", "cc1plus", "collect2") if whole else ():
        program(parts / name, f"echo {name}")
    script = (
        f'case "$1" in -dump*) echo {version} ;; -print-prog-name=*) p={parts}/${{1#*=}}; [ -f $p ] && echo $p '
        "|| echo ${1#*=} ;; *) echo ${1#*=} ;; esac"
    )
    program(folder / "bin" / f"gcc{suffix}", script)
    return program(folder / "bin" / f"g++{suffix}", script)


def make_mpi(root: Path, says: str = "mpirun (Open MPI) 4.1.4") -> Path:
    """Make an MPI."""
    program(root / "bin" / "mpicc", "echo mpicc")
    program(root / "bin" / "mpirun", f"printf '%s\\n' '{says}'")
    put(root / "include" / "mpi.h")
    return root


def add_library(root: Path, header: str, macros: dict[str, int], file: str) -> Path:
    """Add a library to a folder: a header that defines its version, and a file to link."""
    put(root / "include" / header, "".join(f"#define {name} {value}\n" for name, value in macros.items()))
    put(root / file, "library")
    return root


_ROCM_CLANG = "printf 'Available CPUs for this target:\\n\\n\\tgfx90a\\n\\tgfx942\\n\\tgfx1100\\n\\tgfx1030\\n' >&2"
_ROCM_PARTS = {"rocm-core": "6.4.3", "hip": "6.4.43484", "hipblaslt": "0.12.1", "miopen": ""}


def _make_hip(include: Path, clang: Path, bitcode: Path, version: str, gfx: tuple[str, ...]) -> None:
    numbers = zip(("MAJOR", "MINOR", "PATCH"), version.split("."), strict=True)
    put(include / "hip/hip_version.h", "".join(f"#define HIP_VERSION_{name} {number}\n" for name, number in numbers))
    program(clang, _ROCM_CLANG)
    for one in gfx:
        put(bitcode / f"oclc_isa_version_{one.removeprefix('gfx')}.bc", one)


def make_cmake_package(folder: Path, version: str) -> None:
    """Make a CMake package as ROCm's parts have one; without a version, it has no file of one."""
    put(folder / f"{folder.name}-config.cmake", "# found\n")
    if version:
        put(folder / f"{folder.name}-config-version.cmake", f'set(PACKAGE_VERSION "{version}")\n')


def make_rocm(
    root: Path,
    release: str = "6.4.3",
    hip: str = "6.4.43484",
    parts: dict[str, str] | None = None,
    gfx: tuple[str, ...] = ("gfx90a", "gfx942", "gfx1100", "gfx1201"),
) -> Path:
    """Make a ROCm as AMD's packages install it; its clang knows no gfx1201."""
    put(root / ".info/version", f"{release}-127\n")
    program(root / "bin/hipcc", "exit 1")
    _make_hip(root / "include", root / "lib/llvm/bin/clang++", root / "amdgcn/bitcode", hip, gfx)
    for name, version in (_ROCM_PARTS if parts is None else parts).items():
        make_cmake_package(root / "lib/cmake" / name, version)
    put(root / "lib/rocblas/library/TensileLibrary_lazy_gfx90a.dat", "kernels")
    return root


def make_debian_rocm(root: Path) -> Path:
    """Make the ROCm of Debian 13, scattered below ``usr`` and without rocm-core."""
    usr = root / "usr"
    program(usr / "bin/hipcc", "exit 1")
    llvm = usr / "lib/llvm-17"
    _make_hip(
        usr / "include",
        llvm / "bin/clang++",
        llvm / "lib/clang/17/amdgcn/bitcode",
        "5.7.31921",
        ("gfx90a", "gfx942", "gfx1100"),
    )
    make_cmake_package(usr / "lib/x86_64-linux-gnu/cmake/hip", "5.7.31921")
    return usr
