"""Find the tools of a prefix from any source: packages, archives or `tenv.toolchain.cuda_folder`."""

import contextlib
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.file_content import read_text
from tenv.core.prefix import ARCHIVES, has_conda_packages, python_program, site_packages
from tenv.core.versions import Version
from tenv.toolchain import package_layouts as layouts

__all__ = ["python_program", "site_packages"]

TOOLKIT = "cuda"
"""The folder in a prefix that `tenv.toolchain.cuda_folder` creates."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The tools of a prefix; None for missing ones."""

    prefix: Path
    """The environment's folder."""
    python: Path
    """The Python program."""
    site_packages: Path
    """That Python's folder of packages."""
    cuda: Path | None = None
    """The CUDA toolkit's folder (CUDA_HOME)."""
    cuda_version: Version | None = None
    """The toolkit's release."""
    nvcc: Path | None = None
    """The CUDA compiler."""
    cudnn: Path | None = None
    """The folder with cuDNN's ``include`` and ``lib``."""
    cusparselt: Path | None = None
    """The same for cuSPARSELt."""
    nccl: Path | None = None
    """The same for NCCL."""
    cmake: Path | None = None
    """The CMake program."""
    ninja: Path | None = None
    """The Ninja program."""
    mkl: Path | None = None
    """The folder with MKL's ``include`` and ``lib``."""
    magma: Path | None = None
    """The same for MAGMA."""
    mpi: Path | None = None
    """The folder with MPI's ``bin``."""
    cc: Path | None = None
    """The C compiler for builds."""
    cxx: Path | None = None
    """The C++ compiler for builds and for nvcc."""
    system: tuple[str, ...] = ()
    """The tools resolved from the system, by their keys in ``[system]``."""
    conda: bool = False
    """Whether the prefix has conda packages."""
    virtual: bool = False
    """Whether its Python is a virtual environment."""
    rocm: Path | None = None
    """The folder of ROCm."""
    rocm_version: Version | None = None
    """Its release."""
    hip_clang: Path | None = None
    """The folder of HIP's clang++."""
    bitcode: Path | None = None
    """The folder of HIP's device libraries."""
    gfx: tuple[str, ...] = ()
    """The architectures that HIP's compiler takes; empty if it was not asked."""
    nvtx: Path | None = None
    """The folder with NvToolsExt's ``include`` and ``lib`` on Windows, an archive of its own up to CUDA 11.8."""
    compat: Path | None = None
    """The folder of cuda-compat's ``libcuda.so.1``, which programs need with an older driver."""
    programs: tuple[Path, ...] = ()
    """The ``bin`` folders of archives."""
    headers: tuple[Path, ...] = ()
    """The ``include`` folders of the environment and of archives."""


def discover(prefix: Path) -> Toolchain:
    """Find the tools of a prefix."""
    windows = sys.platform == "win32"
    suffix = ".exe" if windows else ""
    virtual = (prefix / "pyvenv.cfg").is_file()
    conda = has_conda_packages(prefix)
    site = site_packages(prefix)
    cuda = _cuda_root(prefix, site)

    homes = _archive_homes(prefix)

    def with_header(name: str) -> Path | None:
        roots = (root for root in (cuda, prefix, prefix / "Library") if root and (cuda or conda))
        return next((root for root in (*roots, *homes) if (root / "include" / name).is_file()), None)

    return Toolchain(
        prefix=prefix,
        python=python_program(prefix),
        site_packages=site,
        cuda=cuda,
        cuda_version=_version(prefix, site, cuda) if cuda else None,
        nvcc=_nvcc(prefix, cuda, suffix) if cuda else None,
        cudnn=with_header("cudnn.h"),
        cusparselt=with_header("cusparseLt.h"),
        nccl=with_header("nccl.h"),
        cmake=_program(prefix, "cmake", suffix),
        ninja=_program(prefix, "ninja", suffix),
        mkl=_library(prefix, homes, ("mkl.h",), ("libmkl_core.a", "libmkl_core.so", "mkl_core.lib")),
        magma=_library(prefix, homes, ("magma.h", "magma_v2.h"), ("libmagma.a", "libmagma.so", "magma.lib")),
        cc=layouts.compiler(prefix, "gcc") if conda and not windows else None,
        cxx=layouts.compiler(prefix, "g++") if conda and not windows else None,
        nvtx=next((root for home in homes if (root := home / "NvToolsExt").is_dir()), None),
        compat=_compat(homes),
        programs=tuple(folder for home in homes if (folder := home / "bin").is_dir()),
        headers=tuple(
            folder for home in (*([prefix] if conda else []), *homes) if (folder := home / "include").is_dir()
        ),
        conda=conda,
        virtual=virtual,
    )


def _archive_homes(prefix: Path) -> list[Path]:
    """Return the folders of archives, from their records."""
    found = []
    for record in sorted((prefix / ARCHIVES).glob("*.json")):
        with contextlib.suppress(OSError, ValueError, RecursionError, KeyError, TypeError):
            found.append(prefix / json.loads(read_text(record))["to"])
    return list(dict.fromkeys(found))


def _compat(homes: Iterable[Path]) -> Path | None:
    folders = (home / name for home in homes for name in ("compat", "lib"))
    return next((folder for folder in folders if (folder / "libcuda.so.1").exists()), None)


def _library(prefix: Path, homes: Iterable[Path], headers: tuple[str, ...], libraries: tuple[str, ...]) -> Path | None:
    roots = (layouts.library_root(root, headers, libraries) for root in (prefix, *homes))
    return next((root for root in roots if root), None)


def _program(prefix: Path, name: str, suffix: str) -> Path | None:
    folders = ("Scripts", "Library/bin") if sys.platform == "win32" else ("bin",)
    return next((path for folder in folders if (path := prefix / folder / f"{name}{suffix}").is_file()), None)


def _nvcc(prefix: Path, cuda: Path, suffix: str) -> Path | None:
    # For conda packages, the folder that tenv assembles only links to it.
    return next((path for root in (prefix, cuda) if (path := root / "bin" / f"nvcc{suffix}").is_file()), None)


def _version(prefix: Path, site: Path, cuda: Path) -> Version | None:
    own = layouts.split_toolkit(prefix) or layouts.flat_toolkit(prefix)
    if own:
        return layouts.conda_toolkit_version(prefix, cuda / "include")
    return layouts.wheel_toolkit_version(site) or _header_version(cuda)


def _cuda_root(prefix: Path, site: Path) -> Path | None:
    root = prefix / TOOLKIT
    if sys.platform == "win32":  # the wheels of CUDA 13 are close enough to a toolkit; archives are joined in one
        folders = (*layouts.toolkit_parts(site), root)
        wheels = (folder for folder in folders if (folder / "bin" / "nvcc.exe").is_file())
        return next(wheels, None) or layouts.flat_toolkit(prefix)
    return root if (root / "include" / "cuda_runtime_api.h").exists() else layouts.flat_toolkit(prefix)


def _header_version(root: Path) -> Version | None:
    """Return the toolkit's release from its header, which has only two numbers: ``12.1`` for 12010."""
    with contextlib.suppress(OSError):
        text = (root / "include" / "cuda_runtime_api.h").read_text("utf-8", "replace")
        if match := re.search(r"^[ \t]*#\s*define\s+CUDART_VERSION\s+(\d{4,6})", text, re.MULTILINE):
            return Version(f"{int(match[1]) // 1000}.{int(match[1]) % 1000 // 10}")
    return None
