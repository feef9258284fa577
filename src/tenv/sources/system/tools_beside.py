"""The torch of another environment, and a host compiler that its toolkit accepts, as tools of the system.

The state of an environment holds the digests of torch's version file, of the records of NVIDIA's wheels and of the
headers that are taken; of libraries, which have gigabytes, it holds sizes and times, and the records hold the digests.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tenv.core.errors import TorchError
from tenv.core.names import infos_of
from tenv.core.versions import Range
from tenv.facts.tables import Facts
from tenv.host import compilers
from tenv.host.choice import fitting_gcc
from tenv.host.places import Places, environment_of
from tenv.host.torch_files import TorchPlace
from tenv.sources.system.host_compilers import find_gcc
from tenv.sources.system.interface import Tool, ToolRequest
from tenv.sources.system.taken import BESIDE
from tenv.targets.manifest import Manifest
from tenv.targets.torch_beside import BesideTorch, require_beside

_MOST = 1 << 30
"""The most bytes of headers and records that are hashed; torch 2.15 and its wheels have 60 MB."""

_LARGEST_HEADER = 16 << 20
"""The largest header in bytes: the largest of CUDA 13.2, cuBLASLt's, has 100 kB."""


def tools_beside(manifest: Manifest, places: Places, facts: Facts, kept: Mapping[str, str]) -> Iterator[Tool]:
    """Yield the torch beside a target, and the gcc that is taken where nvcc rejects the default compiler.

    Args:
        manifest: The manifest for this platform.
        places: The places to search.
        facts: The tables.
        kept: The paths of the tools that the environment uses, by name.

    Raises:
        TorchError: The environment has no torch that a toolkit can be made for.
    """
    torch = require_beside(Path(manifest.beside))
    yield _torch(replace(torch, parts=()) if manifest.dependencies else torch)  # conda's toolkit is whole
    if "gcc" in manifest.system or manifest.dependencies or torch.cuda is None:
        return
    limits = facts.cuda_host_compiler.limits(torch.cuda)
    found = [one for one in compilers.probe(places).value if not environment_of(Path(one.path))]
    if limits is None or fitting_gcc(found, limits.gcc_min, limits.gcc_max) is None:
        return
    accepted = Range(f">={limits.gcc_min},<{limits.gcc_max + 1}")
    gcc = find_gcc(ToolRequest("gcc", accepted, places, kept.get("gcc", "")))
    if isinstance(gcc, Tool):
        yield gcc


def _torch(torch: BesideTorch) -> Tool:
    records = tuple(_records(torch))
    headers: list[Path] = []
    libraries: list[Path] = []
    for part in torch.parts:
        for file in _files_below(part):
            (headers if file.is_relative_to(part / "include") else libraries).append(file)
    for file in headers:
        if file.stat().st_size > _LARGEST_HEADER:
            raise TorchError(f"{file} is no header: it has {file.stat().st_size} bytes")
    if sum(file.stat().st_size for file in (*records, *headers)) > _MOST:
        raise TorchError(f"{torch.prefix} has more than {_MOST} bytes of headers and records")
    version = torch.package / "version.py"
    return Tool(
        name=BESIDE,
        path=torch.package,
        version=torch.version,
        accepted="",
        found_by=f"the torch of {torch.prefix}",
        roles={"prefix": str(torch.prefix), "parts": os.pathsep.join(map(str, torch.parts))},
        notes=tuple(filter(None, (torch.refused,))),
        files=(version, *records, *headers),
        large=tuple(libraries),
        watched=(version, *records[:1]),
    )


def _records(torch: BesideTorch) -> Iterator[Path]:
    """Yield the records of torch, first, and of NVIDIA's wheels; of a conda package, its note."""
    site = torch.package.parent
    for pattern in (infos_of("torch"), *((infos_of("nvidia_*"),) if torch.parts else ())):
        yield from (file for file in sorted(site.glob(f"{pattern}/RECORD")) if file.is_file())
    if torch.where is TorchPlace.CONDA:
        for pattern in ("pytorch-*.json", "libtorch-*.json"):
            yield from (file for file in sorted((torch.prefix / "conda-meta").glob(pattern)) if file.is_file())


def _files_below(part: Path) -> Iterator[Path]:
    """Yield the headers and libraries of a folder, sorted; links to folders are not followed."""
    for name in ("include", "lib"):
        for folder, inner, files in os.walk(part / name):
            inner.sort()
            yield from (path for file in sorted(files) if (path := Path(folder) / file).is_file())
