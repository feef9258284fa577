"""Where things are in a prefix, and how wheels become one CUDA toolkit.

NVIDIA's wheels spread a toolkit over ``site-packages/nvidia/*``: no ``lib64``, no unversioned ``.so`` names, no stub of
the driver's library, no ``version.json``. `assemble` lays one folder of relative links over them that ``nvcc``, CMake's
``FindCUDAToolkit``, PyTorch's find modules and ``torch.utils.cpp_extension`` take for an installed toolkit.
"""

import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tenv import elf
from tenv.files import relative_link, storage_errors, write_atomic
from tenv.versions import Version

__all__ = ["Toolchain", "assemble", "discover"]

_ROOT = "cuda"
_FOLDERS = ("bin", "include", "lib", "nvvm", "compute-sanitizer", "share")
_SHARED = re.compile(r"(?P<stem>lib[\w.+-]+?\.so)(\.\d+)+")
_DRIVER_HEADERS = ("cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h", "cudaProfiler.h")
_NOT_FILES = ("__init__.py", "__pycache__", "py.typed")
_MACHINES = {"linux-64": elf.Machine.X86_64, "linux-aarch64": elf.Machine.AARCH64}


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Where things are in a prefix; None for what it does not hold.

    Attributes:
        prefix: The environment's folder.
        python: The Python program.
        site_packages: Where that Python keeps packages.
        cuda: The CUDA toolkit's folder (CUDA_HOME).
        cuda_version: The toolkit's release.
        nvcc: The CUDA compiler.
        cudnn: The folder above cuDNN's ``include`` and ``lib``.
        cusparselt: The same for cuSPARSELt.
        nccl: The same for NCCL.
        cmake: The CMake program.
        ninja: The Ninja program.
        mkl: The folder above MKL's ``include`` and ``lib``.
        magma: The same for MAGMA.
        compat: The folder of cuda-compat's ``libcuda.so.1``, which newer programs need on an older driver.
    """

    prefix: Path
    python: Path
    site_packages: Path
    cuda: Path | None = None
    cuda_version: Version | None = None
    nvcc: Path | None = None
    cudnn: Path | None = None
    cusparselt: Path | None = None
    nccl: Path | None = None
    cmake: Path | None = None
    ninja: Path | None = None
    mkl: Path | None = None
    magma: Path | None = None
    compat: Path | None = None


def discover(prefix: Path) -> Toolchain:
    """Look at what a prefix holds."""
    windows = sys.platform == "win32"
    programs = prefix / ("Scripts" if windows else "bin")
    suffix = ".exe" if windows else ""
    site = _site_packages(prefix)
    cuda = _cuda_root(prefix, site)

    homes = _archive_homes(prefix)

    def with_header(name: str) -> Path | None:
        places = [*([cuda] if cuda else []), *homes]
        return next((home for home in places if (home / "include" / name).is_file()), None)

    return Toolchain(
        prefix=prefix,
        python=programs / f"python{suffix}",
        site_packages=site,
        cuda=cuda,
        cuda_version=(_toolkit_version(site) or _header_version(cuda)) if cuda else None,
        nvcc=_existing(cuda / "bin" / f"nvcc{suffix}") if cuda else None,
        cudnn=with_header("cudnn.h"),
        cusparselt=with_header("cusparseLt.h"),
        nccl=with_header("nccl.h"),
        cmake=_existing(programs / f"cmake{suffix}"),
        ninja=_existing(programs / f"ninja{suffix}"),
        mkl=_mkl_root(prefix),
        magma=next((home for home in homes if (home / "include" / "magma.h").is_file()), None),
        compat=_compat(homes),
    )


def _archive_homes(prefix: Path) -> list[Path]:
    """Return the folders that archives were put into, as their records tell."""
    found = []
    for record in sorted((prefix / "tenv-meta" / "archives").glob("*.json")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            found.append(prefix / json.loads(record.read_bytes())["to"])
    return list(dict.fromkeys(found))


def _compat(homes: Iterable[Path]) -> Path | None:
    folders = (home / name for home in homes for name in ("compat", "lib"))
    return next((folder for folder in folders if (folder / "libcuda.so.1").exists()), None)


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None


def _site_packages(prefix: Path) -> Path:
    if sys.platform == "win32":
        return prefix / "Lib" / "site-packages"
    found = sorted((prefix / "lib").glob("python3.*/site-packages"))
    return found[-1] if found else prefix / "lib" / "site-packages"


def _cuda_root(prefix: Path, site: Path) -> Path | None:
    if sys.platform == "win32":  # links need a privilege there; the wheels of CUDA 13 are near enough to a toolkit
        return next((root for root in _wheel_roots(site) if (root / "bin" / "nvcc.exe").is_file()), None)
    root = prefix / _ROOT
    return root if (root / "include" / "cuda_runtime_api.h").exists() else None


def _mkl_root(prefix: Path) -> Path | None:
    for root in (prefix, prefix / "Library"):
        libraries = ("libmkl_core.a", "libmkl_core.so", "mkl_core.lib")
        if (root / "include" / "mkl.h").is_file() and any((root / "lib" / name).is_file() for name in libraries):
            return root
    return None


def assemble(prefix: Path, platform: str, parts: Sequence[Path]) -> Toolchain:
    """Make the CUDA toolkit folder of a prefix anew from the wheels in it, where there are any.

    Args:
        prefix: The prefix.
        platform: The platform, which decides the form of the driver's stub.
        parts: The folders below ``site-packages/nvidia`` that hold the target's own packages; what else stands there
            (a hand-installed PyTorch brings CUDA libraries of its own) is no part of the toolkit.

    All links are relative and lie below ``PREFIX/cuda``, so that the prefix can be moved and the folder removed as one.

    Raises:
        StorageError: The folder can't be written.
    """
    site = _site_packages(prefix)
    sources = [part for part in parts if any((part / name).is_dir() for name in _FOLDERS)]
    root = prefix / _ROOT
    with storage_errors(f"can't make the CUDA toolkit folder {root}"):
        if root.is_symlink() or root.is_file():
            root.unlink()
        shutil.rmtree(root, ignore_errors=True)
        wanted = any((source / "include" / "cuda_runtime_api.h").is_file() for source in sources)
        if wanted and platform in _MACHINES:
            _link_toolkit(root, sources)
            _write_driver_stub(root, _MACHINES[platform])
            _write_versions(root, site)
    return discover(prefix)


def _wheel_roots(site: Path) -> Iterator[Path]:
    """Yield the folders below ``site-packages/nvidia`` that hold parts of a toolkit, in a stable order."""
    home = site / "nvidia"
    for folder in sorted(home.iterdir()) if home.is_dir() else ():
        if folder.is_dir() and any((folder / name).is_dir() for name in _FOLDERS):
            yield folder


def _link_toolkit(root: Path, sources: Iterable[Path]) -> None:
    for name in _FOLDERS:
        parts = [source / name for source in sources if (source / name).is_dir()]
        if parts:
            _merge(root / name, parts)
    (root / "lib64").symlink_to("lib")
    _link_unversioned(root / "lib")


def _merge(folder: Path, parts: list[Path]) -> None:
    """Lay several folders over each other in links: one link for what has one source, a real folder for the rest."""
    folder.mkdir(parents=True, exist_ok=True)
    sources: dict[str, list[Path]] = {}
    for part in parts:
        for entry in sorted(part.iterdir()):
            if entry.name not in _NOT_FILES:
                sources.setdefault(entry.name, []).append(entry)
    for name, entries in sources.items():
        folders = [entry for entry in entries if entry.is_dir()]
        if len(folders) > 1:
            _merge(folder / name, folders)
        else:  # where two packages bring one file, the first in the stable order is as good as the other
            relative_link(folder / name, entries[0])


def _link_unversioned(folder: Path) -> None:
    """Add ``libX.so`` beside each ``libX.so.N``, which is the name that linkers and CMake look for."""
    newest: dict[str, Path] = {}
    for entry in sorted(folder.iterdir(), key=_so_version):
        if match := _SHARED.fullmatch(entry.name):
            newest[match["stem"]] = entry  # a higher or longer number comes later
    for stem, entry in newest.items():
        if not (folder / stem).is_symlink() and not (folder / stem).exists():
            (folder / stem).symlink_to(entry.name)


def _so_version(library: Path) -> tuple[list[int], str]:
    return [int(number) for number in re.findall(r"\d+", library.name.partition(".so")[2])], library.name


def _write_driver_stub(root: Path, machine: elf.Machine) -> None:
    """Write ``lib/stubs/libcuda.so``: the driver's library is not on build machines, yet programs link to it."""
    headers = [root / "include" / name for name in _DRIVER_HEADERS]
    texts = [path.read_text("utf-8", "replace") for path in headers if path.is_file()]
    symbols = frozenset[str]().union(*(elf.declared_functions(text) for text in texts))
    if symbols and not (root / "lib" / "stubs" / "libcuda.so").exists():  # NVIDIA's redist brings one
        stubs = root / "lib" / "stubs"
        stubs.mkdir(exist_ok=True)
        write_atomic(stubs / "libcuda.so", elf.stub_library("libcuda.so.1", symbols, machine))


def _distributions(site: Path) -> dict[str, str]:
    """Return the version of every installed package whose name begins with ``nvidia-`` or is the metapackage."""
    found = {}
    for folder in sorted(site.glob("*.dist-info")):
        name, _, version = folder.name.removesuffix(".dist-info").partition("-")
        name = name.replace("_", "-").lower()
        if name == "cuda-toolkit" or name.startswith("nvidia-"):
            found[name] = version
    return found


def _toolkit_version(site: Path) -> Version | None:
    """Return the release of the toolkit in wheels as NVIDIA numbers it: three parts (the fourth counts rebuilds)."""
    packages = _distributions(site)
    text = packages.get("cuda-toolkit") or packages.get("nvidia-cuda-nvcc") or packages.get("nvidia-cuda-runtime")
    found = Version.find(text) if text else None
    return Version(".".join(found.text.split(".")[:3])) if found else None


def _header_version(root: Path) -> Version | None:
    """Return the toolkit's release as its header says it, of which that is all: ``12.1`` for 12010."""
    with contextlib.suppress(OSError):
        text = (root / "include" / "cuda_runtime_api.h").read_text("utf-8", "replace")
        if match := re.search(r"^\s*#\s*define\s+CUDART_VERSION\s+(\d{4,6})", text, re.MULTILINE):
            return Version(f"{int(match[1]) // 1000}.{int(match[1]) % 1000 // 10}")
    return None


def _write_versions(root: Path, site: Path) -> None:
    """Write ``version.json`` as NVIDIA's installers do: the release, then each component by its own version."""
    release = _toolkit_version(site) or _header_version(root)
    rows: dict[str, Mapping[str, str]] = {}
    if release:
        rows["cuda"] = {"name": "CUDA SDK", "version": release.text}
    for name, version in _distributions(site).items():
        if name.startswith("nvidia-cuda-"):
            key = name.removeprefix("nvidia-").replace("-", "_").replace("cuda_runtime", "cuda_cudart")
            rows[key] = {"name": f"CUDA {name.removeprefix('nvidia-cuda-').upper()}", "version": version}
    write_atomic(root / "version.json", json.dumps(rows, indent=3) + os.linesep)
