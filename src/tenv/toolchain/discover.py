"""Find the tools of a prefix from any source: packages, archives or `tenv.toolchain.cuda_folder`.

conda-forge splits CUDA: headers and libraries are in ``targets/x86_64-linux``, programs in ``bin``, the device
compiler in ``nvvm``. Packages of the nvidia channel before CUDA 12.4 have a flat layout: ``include``, ``lib`` and
``bin`` of the prefix. On Windows, both use ``Library``. The names of compilers contain their target system. Wheels of
CUDA 12 have a folder for each library in ``site-packages/nvidia``; those of CUDA 13 share one folder.
"""

import contextlib
import json
import platform as host
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.file_content import read_text
from tenv.core.names import CondaFile, dist_info, dist_infos
from tenv.core.prefix import ARCHIVES, has_conda_packages, python_program, site_packages
from tenv.core.versions import Version

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
        cc=compiler(prefix, "gcc") if conda and not windows else None,
        cxx=compiler(prefix, "g++") if conda and not windows else None,
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
    roots = (library_root(root, headers, libraries) for root in (prefix, *homes))
    return next((root for root in roots if root), None)


def _program(prefix: Path, name: str, suffix: str) -> Path | None:
    folders = ("Scripts", "Library/bin") if sys.platform == "win32" else ("bin",)
    return next((path for folder in folders if (path := prefix / folder / f"{name}{suffix}").is_file()), None)


def _nvcc(prefix: Path, cuda: Path, suffix: str) -> Path | None:
    # For conda packages, the folder that tenv assembles only links to it.
    return next((path for root in (prefix, cuda) if (path := root / "bin" / f"nvcc{suffix}").is_file()), None)


def _version(prefix: Path, site: Path, cuda: Path) -> Version | None:
    own = split_toolkit(prefix) or flat_toolkit(prefix)
    if own:
        return conda_toolkit_version(prefix, cuda / "include")
    return wheel_toolkit_version(site) or _header_version(cuda / "include" / _HEADER, "CUDART_VERSION")


def _cuda_root(prefix: Path, site: Path) -> Path | None:
    root = prefix / TOOLKIT
    if sys.platform == "win32":  # the wheels of CUDA 13 are close enough to a toolkit; archives are joined in one
        folders = (*toolkit_parts(site), root)
        wheels = (folder for folder in folders if (folder / "bin" / "nvcc.exe").is_file())
        return next(wheels, None) or flat_toolkit(prefix)
    return root if (root / "include" / "cuda_runtime_api.h").exists() else flat_toolkit(prefix)


def _header_version(header: Path, macro: str) -> Version | None:
    """Return the toolkit's release from a macro of a header, which has only two numbers: ``12.1`` for 12010."""
    with contextlib.suppress(OSError):
        text = header.read_text("utf-8", "replace")
        if match := re.search(rf"^[ \t]*#[ \t]*define[ \t]+{macro}[ \t]+(\d{{4,6}})", text, re.MULTILINE):
            return Version(f"{int(match[1]) // 1000}.{int(match[1]) % 1000 // 10}")
    return None


_HEADER = "cuda_runtime_api.h"
_TARGETS = {"x86_64": ("x86_64-linux",), "aarch64": ("sbsa-linux", "aarch64-linux")}
_PACKAGE = re.compile(r"cuda(toolkit)?(-[a-z-]+)?|magma[\w-]*|cudnn")


def split_toolkit(prefix: Path) -> Path | None:
    """Return the folder with the ``include`` and ``lib`` of a CUDA toolkit in conda-forge's layout."""
    folders = (prefix / "targets" / name for name in _TARGETS.get(host.machine(), ()))
    return next((folder for folder in folders if (folder / "include" / _HEADER).is_file()), None)


def flat_toolkit(prefix: Path) -> Path | None:
    """Return the folder of a CUDA toolkit in the flat layout."""
    roots = (prefix, prefix / "Library")
    return next((root for root in roots if (root / "include" / _HEADER).is_file()), None)


def conda_toolkit_version(prefix: Path, include: Path) -> Version | None:
    """Return a toolkit's release: its metapackage's if there is one, else its header's."""
    found = conda_components(prefix)
    stated = _header_version(include / "cuda.h", "CUDA_VERSION")
    whole = Version.find(found.get("cuda-toolkit", "") or found.get("cudatoolkit", ""))
    # An unpinned metapackage brings a newer compiler: the header for compiling counts.
    return whole if whole and (stated is None or whole.major_minor == stated.major_minor) else stated


def conda_components(prefix: Path) -> dict[str, str]:
    """Return the version of each CUDA package in a prefix by name, from the names of their records."""
    folder = prefix / "conda-meta"
    notes = (CondaFile.parse(path.name) for path in sorted(folder.glob("*.json")))
    return {note.name: note.version for note in notes if note and _PACKAGE.fullmatch(note.name)}


def compiler(prefix: Path, name: str) -> Path | None:
    """Return a compiler of a prefix, ``gcc`` or ``g++``, for this machine."""
    programs = prefix / "bin"
    named = sorted(programs.glob(f"{host.machine()}-conda*-linux-gnu-{name}")) if programs.is_dir() else []
    plain = programs / name
    return next(iter(named), plain if plain.is_file() else None)


def library_root(prefix: Path, headers: tuple[str, ...], libraries: tuple[str, ...]) -> Path | None:
    """Return the folder whose ``include`` and ``lib`` have one of the headers and one of the libraries."""
    for root in (prefix, prefix / "Library"):
        if any((root / "include" / name).is_file() for name in headers) and any(
            (root / "lib" / name).is_file() for name in libraries
        ):
            return root
    return None


FOLDERS = ("bin", "include", "lib", "nvvm", "compute-sanitizer", "share")
"""The folders of a toolkit."""


def holds_part(folder: Path) -> bool:
    """Return whether a folder has any folder of a toolkit."""
    return any((folder / name).is_dir() for name in FOLDERS)


def toolkit_parts(site: Path) -> Iterator[Path]:
    """Yield the folders below ``site-packages/nvidia`` with parts of a toolkit, in a stable order."""
    home = site / "nvidia"
    for folder in sorted(home.iterdir()) if home.is_dir() else ():
        if holds_part(folder):
            yield folder


def wheel_components(site: Path) -> dict[str, str]:
    """Return the versions of the metapackage and of installed packages whose names begin with ``nvidia-``."""
    found = {}
    for folder in dist_infos(site):
        name, version = dist_info(folder)
        if name == "cuda-toolkit" or name.startswith("nvidia-"):
            found[name] = version
    return found


def wheel_toolkit_version(site: Path) -> Version | None:
    """Return the release of a toolkit in wheels in NVIDIA's form: three parts (the fourth counts rebuilds)."""
    packages = wheel_components(site)
    text = packages.get("cuda-toolkit") or packages.get("nvidia-cuda-nvcc") or packages.get("nvidia-cuda-runtime")
    found = Version.find(text) if text else None
    return Version(".".join(found.text.split(".")[:3])) if found else None
