"""The torches that the shell leads to: of the active environments, and of the first Python on PATH. Nothing is run."""

from collections.abc import Iterator
from pathlib import Path

from tenv.host.field import HostField
from tenv.host.installed_torch import torch_in_short
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.places import Places
from tenv.host.report import FoundTorch
from tenv.host.torch_files import find_torch

_VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX")
_PROGRAMS = ("python", "python3")
_LOOKED = f"{', '.join(_VARIABLES)}, python on PATH"


def probe(places: Places) -> Fact[tuple[FoundTorch, ...]] | Missing:
    """Return the torches that the shell leads to, each once; `Missing` where there is none."""
    found: dict[str, FoundTorch] = {}
    for way, path in _ways(places):
        files = find_torch(path)
        if not isinstance(files, Missing) and files.place not in found and (torch := torch_in_short(files, way)):
            found[files.place] = torch
    if not found:
        return Missing(f"no torch is there ({_LOOKED})", ReasonKind.NONE)
    return Fact(tuple(found.values()), _LOOKED, OriginKind.SEARCH)


def _ways(places: Places) -> Iterator[tuple[str, Path]]:
    for name in _VARIABLES:
        if value := places.environ.get(name):
            yield name, Path(value)
    for program in _PROGRAMS:
        if path := places.find(program):
            yield f"{program} on PATH", Path(path)
            return


TORCHES = HostField(
    label="torches",
    meaning=(
        "the torches that `VIRTUAL_ENV`, `CONDA_PREFIX` and the `python` on PATH lead to, read without importing them; "
        "`kind` is `cpu`, `cuda`, `rocm` or `xpu`"
    ),
    form="a list of `path`, `version`, `kind`, `cuda` (or null), `found_by`",
    probe=lambda scan: probe(scan.places),
    show=lambda found: [f"{one.version}  {one.path}, by {one.found_by}" for one in found],
)
