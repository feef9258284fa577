"""Where NVIDIA's wheels put the parts of a CUDA toolkit: spread over ``site-packages/nvidia/*``.

A wheel of CUDA 12 has a folder for each library; those of CUDA 13 share one. What `tenv.toolchain.conda_layout` is to
conda packages, this is to wheels.
"""

from collections.abc import Iterator
from pathlib import Path

from tenv.core.names import dist_info, dist_infos
from tenv.core.versions import Version

__all__ = ["FOLDERS", "components", "holds_part", "toolkit_parts", "toolkit_version"]

FOLDERS = ("bin", "include", "lib", "nvvm", "compute-sanitizer", "share")
"""The folders that a toolkit is made of."""


def holds_part(folder: Path) -> bool:
    """Return whether a folder has any of the folders that a toolkit is made of."""
    return any((folder / name).is_dir() for name in FOLDERS)


def toolkit_parts(site: Path) -> Iterator[Path]:
    """Yield the folders below ``site-packages/nvidia`` that hold parts of a toolkit, in a stable order."""
    home = site / "nvidia"
    for folder in sorted(home.iterdir()) if home.is_dir() else ():
        if holds_part(folder):
            yield folder


def components(site: Path) -> dict[str, str]:
    """Return the version of every installed package whose name begins with ``nvidia-`` or is the metapackage."""
    found = {}
    for folder in dist_infos(site):
        name, version = dist_info(folder)
        if name == "cuda-toolkit" or name.startswith("nvidia-"):
            found[name] = version
    return found


def toolkit_version(site: Path) -> Version | None:
    """Return the release of the toolkit in wheels as NVIDIA numbers it: three parts (the fourth counts rebuilds)."""
    packages = components(site)
    text = packages.get("cuda-toolkit") or packages.get("nvidia-cuda-nvcc") or packages.get("nvidia-cuda-runtime")
    found = Version.find(text) if text else None
    return Version(".".join(found.text.split(".")[:3])) if found else None
