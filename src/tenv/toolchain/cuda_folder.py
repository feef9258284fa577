"""Build the CUDA toolkit folder of a prefix from the parts in its packages.

NVIDIA's wheels spread a toolkit over ``site-packages/nvidia/*``: no ``lib64``, no unversioned ``.so`` names, no stub of
the driver's library, no ``version.json``. For these, and for conda-forge's split toolkit, `assemble` creates one
folder of relative links that ``nvcc``, CMake's ``FindCUDAToolkit``, PyTorch's find modules and
``torch.utils.cpp_extension`` treat as an installed toolkit.
"""

import json
import os
import re
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tenv.core.files import relative_link, storage_errors, write_atomic
from tenv.core.prefix import files_in, prune
from tenv.toolchain import driver_stub as elf
from tenv.toolchain.discover import (
    FOLDERS,
    TOOLKIT,
    Toolchain,
    conda_components,
    discover,
    holds_part,
    split_toolkit,
    wheel_components,
)

_OF_LIBRARIES = ("include", "lib")
"""The folders of a part outside the prefix that are linked: programs of another environment are never run."""
_BESIDE = ("cudnn", "cusparselt", "nccl")
_SHARED = re.compile(r"(?P<stem>lib[\w.+-]+?\.so)(\.\d+)+")
_DRIVER_HEADERS = ("cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h", "cudaProfiler.h")
_NOT_FILES = ("__init__.py", "__pycache__", "py.typed")
_MACHINES = {"linux-64": elf.ProcessorFamily.X86_64, "linux-aarch64": elf.ProcessorFamily.AARCH64}


def assemble(prefix: Path, platform: str, parts: Sequence[Path], keep: Collection[str] = ()) -> Toolchain:
    """Rebuild the CUDA toolkit folder of a prefix from its wheels, or from conda-forge's split toolkit.

    All links are relative and below ``PREFIX/cuda``, so that the prefix can be moved and the folder removed. On
    Windows, where symbolic links need a privilege, NVIDIA's archives are joined by hard links; wheels stay as they are.

    Args:
        prefix: The prefix.
        platform: The platform, which determines the form of the driver stub.
        parts: The folders below ``site-packages/nvidia`` with the target's own packages. Other folders there (a
            PyTorch that the user installed brings its own CUDA libraries) are not part of the toolkit.
        keep: The user's files in the folder, relative to the prefix. They stay, also in the place of a link.

    Raises:
        StorageError: The folder is not writable.
    """
    sources = [part for part in parts if holds_part(part)]
    root = prefix / TOOLKIT
    with storage_errors(f"can't create the CUDA toolkit folder {root}"):
        _clear(root, [prefix / name for name in keep])
        split = split_toolkit(prefix)
        sources = [split, *sources] if split else sources
        wanted = any((source / "include" / "cuda_runtime_api.h").is_file() for source in sources)
        if wanted and platform in _MACHINES:
            _link_toolkit(root, sources)
            for name in ("bin", "nvvm") if split else ():
                if (prefix / name).is_dir() and not (root / name).exists():
                    relative_link(root / name, prefix / name)
            if not (root / "lib" / "stubs").exists():
                _write_driver_stub(root, _MACHINES[platform])
        elif wanted and _is_spread(sources):
            _join(root, sources)
        found = discover(prefix)
        if root.is_dir():
            _write_versions(root, found)
    return found


def assemble_beside(prefix: Path, parts: Sequence[Path], keep: Collection[str] = ()) -> Toolchain:
    """Rebuild the folder of CUDA libraries of a prefix that uses a system toolkit.

    Args:
        prefix: The prefix.
        parts: The folders below ``site-packages/nvidia`` with the target's own packages. Only libraries that no
            toolkit has are linked: a second cuBLAS next to the toolkit's would mix releases.
        keep: The user's files in the folder, relative to the prefix.

    Raises:
        StorageError: The folder is not writable.
    """
    root = prefix / TOOLKIT
    sources = [part for part in parts if part.name in _BESIDE]
    with storage_errors(f"can't create the folder of CUDA libraries {root}"):
        _clear(root, [prefix / name for name in keep])
        if sources:
            _link_toolkit(root, sources)

    def with_header(name: str) -> Path | None:
        return root if (root / "include" / name).is_file() else None

    found = discover(prefix)
    return replace(
        found,
        cudnn=with_header("cudnn.h") or found.cudnn,
        cusparselt=with_header("cusparseLt.h") or found.cusparselt,
        nccl=with_header("nccl.h") or found.nccl,
    )


def _clear(root: Path, keep: Collection[Path]) -> None:
    """Remove a toolkit's folder but for some files in it and their folders."""
    kept = {path for path in keep if path.is_relative_to(root)}
    if root.is_symlink() or root.is_file():
        root.unlink()
    elif kept:
        for name in files_in(root):
            if root / name not in kept:
                (root / name).unlink()
        prune(root)
    else:
        shutil.rmtree(root, ignore_errors=True)


def _link_toolkit(root: Path, sources: Iterable[Path]) -> None:
    for name in FOLDERS:
        parts = [
            source / name
            for source in sources
            if (source / name).is_dir() and (name in _OF_LIBRARIES or source.is_relative_to(root.parent))
        ]
        if parts:
            _merge(root / name, parts)
    if not os.path.lexists(root / "lib64"):
        (root / "lib64").symlink_to("lib")
    _link_unversioned(root / "lib")


def _is_spread(sources: Sequence[Path]) -> bool:
    """Return whether a Windows compiler and its headers are in different folders, as in NVIDIA's archives."""
    compilers = [source for source in sources if (source / "bin" / "nvcc.exe").is_file()]
    return bool(compilers) and not any((source / "include" / "cuda_runtime_api.h").is_file() for source in compilers)


def _join(root: Path, sources: Iterable[Path]) -> None:
    """Lay folders over one another with hard links; as with `_merge`, the first of two files counts."""
    for source in sources:
        for name in FOLDERS:
            if (source / name).is_dir():
                shutil.copytree(
                    source / name,
                    root / name,
                    ignore=shutil.ignore_patterns(*_NOT_FILES),
                    copy_function=_hard_link,
                    dirs_exist_ok=True,
                )


def _hard_link(source: str, target: str) -> None:
    if os.path.lexists(target):
        return
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links, such as exFAT
        shutil.copyfile(source, target)


def _merge(folder: Path, parts: list[Path]) -> None:
    """Merge folders with links: one link for a name from one folder, a real folder for the rest."""
    folder.mkdir(parents=True, exist_ok=True)
    sources: dict[str, list[Path]] = {}
    for part in parts:
        for entry in sorted(part.iterdir()):
            if entry.name not in _NOT_FILES:
                sources.setdefault(entry.name, []).append(entry)
    for name, entries in sources.items():
        folders = [entry for entry in entries if entry.is_dir()]
        if len(folders) > 1 or (folders and (folder / name).is_dir()):  # a folder there holds a file of the user's
            _merge(folder / name, folders)
        elif not os.path.lexists(folder / name):  # of two packages with one file, the first in the stable order
            relative_link(folder / name, entries[0])


def _link_unversioned(folder: Path) -> None:
    """Add ``libX.so`` next to each ``libX.so.N``, since linkers and CMake search for that name."""
    newest: dict[str, Path] = {}
    for entry in sorted(folder.iterdir(), key=_so_version):
        if match := _SHARED.fullmatch(entry.name):
            newest[match["stem"]] = entry  # a higher or longer number comes later
    for stem, entry in newest.items():
        if not (folder / stem).is_symlink() and not (folder / stem).exists():
            (folder / stem).symlink_to(entry.name)


def _so_version(library: Path) -> tuple[list[int], str]:
    return [int(number) for number in re.findall(r"\d+", library.name.partition(".so")[2])], library.name


def _write_driver_stub(root: Path, machine: elf.ProcessorFamily) -> None:
    """Write ``lib/stubs/libcuda.so``: build hosts lack the driver's library, but programs link to it."""
    headers = [root / "include" / name for name in _DRIVER_HEADERS]
    texts = [path.read_text("utf-8", "replace") for path in headers if path.is_file()]
    symbols = frozenset[str]().union(*(elf.declared_functions(text) for text in texts))
    if symbols and not (root / "lib" / "stubs" / "libcuda.so").exists():  # NVIDIA's redist has one
        stubs = root / "lib" / "stubs"
        stubs.mkdir(exist_ok=True)
        write_atomic(stubs / "libcuda.so", elf.stub_library("libcuda.so.1", symbols, machine))


def _write_versions(root: Path, found: Toolchain) -> None:
    """Write ``version.json`` like NVIDIA's installers: the release, then the version of each component."""
    rows: dict[str, Mapping[str, str]] = {}
    if found.cuda_version:
        rows["cuda"] = {"name": "CUDA SDK", "version": found.cuda_version.text}
    wheels = wheel_components(found.site_packages)
    packages = {name.removeprefix("nvidia-"): version for name, version in wheels.items()}
    for name, version in {**packages, **conda_components(found.prefix)}.items():
        if name.startswith("cuda-") and name not in ("cuda-toolkit", "cuda-version"):
            key = name.replace("-", "_").replace("cuda_runtime", "cuda_cudart")
            rows[key] = {"name": f"CUDA {name.removeprefix('cuda-').upper()}", "version": version}
    write_atomic(root / "version.json", json.dumps(rows, indent=3) + os.linesep)
