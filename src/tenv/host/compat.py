"""Whether a libcuda other than the kernel driver's own stands first: cuda-compat, or a leftover of another driver."""

import os
import re
from pathlib import Path

from tenv.core.versions import Version
from tenv.host.interface import Fact, Missing
from tenv.host.loader import Loader
from tenv.host.places import is_wsl
from tenv.host.report import Compat

__all__ = ["in_compat_folder", "parse_name", "probe"]

_NAME = re.compile(r"lib[\w-]+\.so\.(?P<version>\d{3,4}(\.\d{1,4}){1,3})", re.ASCII)
_FOLDERS = {"compat", "cuda-compat", "compat_orin"}


def parse_name(name: str) -> Version | None:
    """Return the driver version in the name of one of its libraries (``libcuda.so.550.54.15``), None without one."""
    match = _NAME.fullmatch(name)
    return Version(match["version"]) if match else None


def in_compat_folder(path: str) -> bool:
    """Tell whether a library lies where cuda-compat is installed."""
    return not _FOLDERS.isdisjoint(Path(path).parent.parts)


def probe(loader: Loader, driver: Fact[Version] | Missing) -> Fact[Compat] | Missing:
    """Return the libcuda that stands before the driver's own, or `Missing` where it is the driver's.

    Args:
        loader: The loader that finds it.
        driver: The kernel driver's version.
    """
    library = loader.find(loader.places.cuda_library)
    if isinstance(library, Missing):
        return library
    real = Path(os.path.realpath(library.path))
    version = _version(real)
    if in_compat_folder(str(real)) or in_compat_folder(str(library.path)):
        if version is None:
            return Missing(f"{real} is cuda-compat's, but no file beside it tells its version")
        return Fact(Compat(str(real), version), library.origin)
    if version is None or isinstance(driver, Missing) or is_wsl(loader.places.root):
        return Missing(f"{real} lies in no folder of cuda-compat")
    if version == driver.value:
        return Missing(f"{real} is the driver's own")
    return Fact(Compat(str(real), version), f"{library.origin}, where the kernel driver is {driver.value}")


def _version(library: Path) -> Version | None:
    """Return the version of a driver's library, by its own name or by those of the libraries that came with it."""
    if found := parse_name(library.name):
        return found
    try:
        beside = sorted(
            path.name for path in library.parent.iterdir() if path.name.startswith(("libcuda", "libnvidia"))
        )
    except OSError:
        return None
    versions = {version for name in beside if (version := parse_name(name))}
    return versions.pop() if len(versions) == 1 else None
