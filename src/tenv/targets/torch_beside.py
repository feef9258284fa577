"""The torch that a toolkit is made for: `for = "../.venv"` of a manifest names the environment that holds it.

Nothing of that environment is imported, run or changed. Its files may be of anyone: a version is a plain word, and
headers and libraries are taken only from folders that no other user can write.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.errors import TorchError
from tenv.core.other_users import open_part, others_write
from tenv.core.versions import Version
from tenv.host.installed_torch import TorchKind, torch_in_short
from tenv.host.interface import Missing, ReasonKind
from tenv.host.places import is_file, is_folder
from tenv.host.report import FoundTorch
from tenv.host.torch_files import FolderTorch, TorchPlace, find_torch, several_torches

OLDEST_CUDA = Version("11.8")
"""The first CUDA release that tenv has a toolkit for in archives with digests."""

_VERSION = re.compile(r"\d+(\.\d+)*[A-Za-z0-9.+]{0,60}", re.ASCII)
_KINDS = {TorchKind.ROCM.value: "ROCm", TorchKind.XPU.value: "Intel's XPU"}
_FOLDERS = 100
"""The most folders below ``site-packages/nvidia`` that are looked at; torch's wheels make 15."""
_FILES = 50_000
"""The most headers and libraries of one of them; torch 2.15 and its wheels have 3,000."""
_NAME = re.compile(r"\w[\w.+-]{0,100}", re.ASCII)
"""The name of such a folder. Another one could have a colon, which separates paths in the notes of an environment."""

_PARTS = {
    "cublas": ("cublas_v2.h", "libcublas.so*"),
    "cufft": ("cufft.h", "libcufft.so*"),
    "cufile": ("cufile.h", "libcufile.so*"),
    "curand": ("curand.h", "libcurand.so*"),
    "cusolver": ("cusolverDn.h", "libcusolver.so*"),
    "cusparse": ("cusparse.h", "libcusparse.so*"),
    "nvjitlink": ("nvJitLink.h", "libnvJitLink.so*"),
    "nvrtc": ("nvrtc.h", "libnvrtc.so*"),
    "nvtx": ("nvtx3/nvToolsExt.h", ""),
}
"""A header and a library of each part of CUDA that torch's wheels bring, by the extras of the wheel cuda-toolkit."""


@dataclass(frozen=True, slots=True)
class BesideTorch:
    """A torch in an environment that tenv did not make."""

    prefix: Path
    """The environment."""
    package: Path
    """Its folder ``torch``."""
    where: TorchPlace
    """The kind of the environment."""
    version: str
    """Its version with the local part."""
    cuda: Version | None
    """The CUDA release of its compiler; None for a torch without CUDA."""
    parts: tuple[Path, ...] = ()
    """The folders of NVIDIA's wheels there whose headers and libraries are taken."""
    held: frozenset[str] = frozenset()
    """The parts of CUDA in them, by the extras of the wheel cuda-toolkit."""
    refused: str = ""
    """Why some are not taken, one sentence; empty if all are."""


def require_beside(path: Path) -> BesideTorch:
    """Return the torch of an environment; raises TorchError if it has none that a toolkit can be made for."""
    found = find_beside(path)
    if isinstance(found, Missing):
        hint = "`tenv create auto --for PATH` takes an environment with one torch, for CUDA or without"
        raise TorchError(found.reason, hint=hint)
    return found


def environ_outside(environ: Mapping[str, str], prefix: str) -> Mapping[str, str]:
    """Return variables whose PATH has no folder of an environment, so that none of its programs is run."""
    inside = (os.path.abspath(prefix), os.path.realpath(prefix))  # noqa: PTH100 (both names of a folder)
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    kept = [folder for folder in folders if not any(Path(os.path.normpath(folder)).is_relative_to(at) for at in inside)]
    return {**environ, "PATH": os.pathsep.join(kept)}


def find_beside(path: Path) -> BesideTorch | Missing:
    """Return the torch of an environment; or why no toolkit can be made for it, in one sentence.

    Args:
        path: The environment, or its ``site-packages``.
    """
    files = find_torch(path)
    if isinstance(files, Missing):
        return files
    if not isinstance(files, FolderTorch):
        return _none(f"{path} is a wheel, and the toolkit is made beside an environment")
    if len(several := several_torches(files, path)) > 1:
        return _none(f"{files.prefix} has several torches: {', '.join(several)}")
    short = torch_in_short(files, "")
    if short is None or not _VERSION.fullmatch(short.version):
        return _none(f"{files.place}/version.py has no version of torch")
    if other := _other(short):
        return _none(f"torch {short.version} of {files.prefix} is built for {other}")
    parts, refused = _taken(files.package.parent) if short.cuda else ((), "")
    cuda = Version(short.cuda.major_minor) if short.cuda else None
    return BesideTorch(
        Path(files.prefix), files.package, files.kind, short.version, cuda, parts, frozenset(_held(parts)), refused
    )


def _other(torch: FoundTorch) -> str:
    """Return the accelerator of a torch that no toolkit can be made for; empty for one that has one."""
    if torch.kind in (TorchKind.ROCM, TorchKind.XPU):
        return f"{_KINDS[torch.kind]}, and tenv makes toolkits of CUDA alone"
    if torch.kind == TorchKind.CUDA and torch.cuda is None:
        return "a CUDA release that its version.py does not name"
    if torch.cuda and torch.cuda < OLDEST_CUDA:
        return f"CUDA {torch.cuda}, and tenv makes toolkits from {OLDEST_CUDA} on"
    return ""


def _none(reason: str) -> Missing:
    return Missing(reason, ReasonKind.NONE)


def _taken(site: Path) -> tuple[tuple[Path, ...], str]:
    """Return the folders below ``site-packages/nvidia`` with headers and libraries, and why others are not taken."""
    found, refused = [], ""
    home = site / "nvidia"
    names = sorted(os.listdir(home))[:_FOLDERS] if is_folder(home) else ()  # noqa: PTH208 (fast)
    for folder in (home / name for name in names if _NAME.fullmatch(name)):
        if not is_folder(folder / "include") and not is_folder(folder / "lib"):
            continue
        if fault := _fault(folder, site):
            refused = refused or fault
        else:
            found.append(folder)
    return tuple(found), refused


def _fault(folder: Path, site: Path) -> str:
    """Return why nothing is taken from a folder: a link leads out of the environment, or another user can write it."""
    home = os.path.realpath(site)
    for part in (folder / "include", folder / "lib"):
        real = os.path.realpath(part)
        if not real.startswith(home + os.sep):
            return f"nothing is taken from {folder}: a link leads to {real}"
        if is_folder(part) and (open_ := open_part(part)):
            return f"nothing is taken from {folder}: another user can write {open_}"
    return next(_faults_below(folder), "")


def _faults_below(folder: Path) -> Iterator[str]:
    """Yield why the files of a folder are not taken: links that lead out of it, files that another user can write.

    uv installs a package as links into its cache where ``link-mode`` is ``symlink``.
    """
    real, left, count = os.path.realpath(folder), [folder / "include", folder / "lib"], 0
    while left:
        place = left.pop()
        try:
            entries = [*os.scandir(place)] if is_folder(place) else []
        except OSError as error:
            yield f"nothing is taken from {folder}: {place}: {error.strerror}"
            return
        count += len(entries)
        if count > _FILES:
            yield f"nothing is taken from {folder}: it has more than {_FILES} headers and libraries"
            return
        for entry in entries:
            if entry.is_symlink():
                if not (end := os.path.realpath(entry.path)).startswith(real + os.sep):
                    yield f"nothing is taken from {folder}: a link leads from {entry.path} to {end}"
            elif others_write(entry.stat(follow_symlinks=False)):
                yield f"nothing is taken from {folder}: another user can write {entry.path}"
            elif entry.is_dir(follow_symlinks=False):
                left.append(Path(entry.path))


def _held(parts: tuple[Path, ...]) -> Iterator[str]:
    for name, (header, library) in _PARTS.items():
        headers = any(is_file(part / "include" / header) for part in parts)
        if headers and (not library or any(any((part / "lib").glob(library)) for part in parts)):
            yield name
