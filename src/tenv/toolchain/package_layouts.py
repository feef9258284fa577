"""The layouts of toolchain parts: conda packages in a prefix, NVIDIA's wheels in ``site-packages/nvidia/*``.

conda-forge splits CUDA: headers and libraries are in ``targets/x86_64-linux``, programs in ``bin``, the device
compiler in ``nvvm``. Packages of the nvidia channel before CUDA 12.4 have a flat layout: ``include``, ``lib`` and
``bin`` of the prefix. On Windows, both use ``Library``. The names of compilers contain their target system. Wheels of
CUDA 12 have a folder for each library; those of CUDA 13 share one folder.
"""

import platform as host
import re
from collections.abc import Iterator
from pathlib import Path

from tenv.core.names import CondaFile, dist_info, dist_infos
from tenv.core.versions import Version

_HEADER = "cuda_runtime_api.h"
_TARGETS = {"x86_64": ("x86_64-linux",), "aarch64": ("sbsa-linux", "aarch64-linux")}
_CUDA_VERSION = re.compile(r"^#define CUDA_VERSION (\d{1,9})$", re.MULTILINE)
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
    try:
        match = _CUDA_VERSION.search((include / "cuda.h").read_text("utf-8", "replace"))
    except OSError:
        match = None
    stated = Version(f"{int(match[1]) // 1000}.{int(match[1]) % 1000 // 10}") if match else None
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
