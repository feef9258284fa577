"""Detect a libcuda that is loaded before the driver's own: cuda-compat, or a leftover of another driver."""

import os
import re
from pathlib import Path

from tenv.core.versions import Version
from tenv.host.field import HostField, Lane
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.loader import Loader
from tenv.host.places import is_wsl
from tenv.host.report import Compat, LibcudaKind

_NAME = re.compile(r"lib[\w-]+\.so\.(?P<version>\d{3,4}(\.\d{1,4}){1,3})", re.ASCII)
_FOLDERS = {"compat", "cuda-compat", "compat_orin"}


def parse_name(name: str) -> Version | None:
    """Return the driver version in the name of a driver library (``libcuda.so.550.54.15``); None if it has none."""
    match = _NAME.fullmatch(name)
    return Version(match["version"]) if match else None


def kind_of(path: str) -> LibcudaKind:
    """Return the kind of a libcuda by its folder."""
    folders = Path(path).parent.parts
    if not _FOLDERS.isdisjoint(folders):
        return LibcudaKind.CUDA_COMPAT
    return LibcudaKind.WSL if "wsl" in folders else LibcudaKind.OTHER


def probe(loader: Loader, driver: Fact[Version] | Missing) -> Fact[Compat] | Missing:
    """Return the libcuda that is loaded before the driver's own, or `Missing` if the first one is the driver's.

    Args:
        loader: The loader that finds it.
        driver: The kernel driver's version.
    """
    library = loader.find(loader.places.cuda_library)
    if isinstance(library, Missing):
        return library
    real = Path(os.path.realpath(library.path))
    version = _version(real)
    if LibcudaKind.CUDA_COMPAT in (kind_of(str(real)), kind_of(str(library.path))):
        if version is None:
            reason = f"{real} belongs to cuda-compat, but no file next to it has its version"
            return Missing(reason, ReasonKind.UNREADABLE)
        return Fact(Compat(str(real), version, kind_of(str(real))), library.origin, OriginKind.LOADER)
    if version is None or isinstance(driver, Missing) or is_wsl(loader.places.root):
        return Missing(f"{real} is not in a folder of cuda-compat", ReasonKind.DRIVERS_OWN)
    if version == driver.value:
        return Missing(f"{real} is the driver's own", ReasonKind.DRIVERS_OWN)
    origin = f"{library.origin}; the kernel driver is {driver.value}"
    return Fact(Compat(str(real), version, kind_of(str(real))), origin, OriginKind.LOADER)


def _version(library: Path) -> Version | None:
    """Return the version of a driver library from its own name or from the names of its companion libraries."""
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


COMPAT = HostField(
    label="cuda-compat",
    meaning="a libcuda that is loaded before the driver's own: cuda-compat, or a leftover of another driver",
    form="`path`, `version`, `kind`",
    probe=lambda scan: probe(scan.loader, scan.driver),
    show=lambda compat: [f"{compat.version}  {compat.path}"],
    lane=Lane.DRIVER,
)
