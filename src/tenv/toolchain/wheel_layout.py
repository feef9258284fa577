"""The layout of CUDA toolkit parts in NVIDIA's wheels: spread over ``site-packages/nvidia/*``.

Wheels of CUDA 12 have a folder for each library; those of CUDA 13 share one. `tenv.toolchain.conda_layout` has the
layout of conda packages.
"""

from collections.abc import Iterator
from pathlib import Path

from tenv.core.names import dist_info, dist_infos
from tenv.core.versions import Version

__all__ = ["FOLDERS", "components", "holds_part", "toolkit_parts", "toolkit_version"]

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


def components(site: Path) -> dict[str, str]:
    """Return the versions of the metapackage and of installed packages whose names begin with ``nvidia-``."""
    found = {}
    for folder in dist_infos(site):
        name, version = dist_info(folder)
        if name == "cuda-toolkit" or name.startswith("nvidia-"):
            found[name] = version
    return found


def toolkit_version(site: Path) -> Version | None:
    """Return the release of a toolkit in wheels in NVIDIA's form: three parts (the fourth counts rebuilds)."""
    packages = components(site)
    text = packages.get("cuda-toolkit") or packages.get("nvidia-cuda-nvcc") or packages.get("nvidia-cuda-runtime")
    found = Version.find(text) if text else None
    return Version(".".join(found.text.split(".")[:3])) if found else None
