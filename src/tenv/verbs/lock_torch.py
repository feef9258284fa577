"""Lock a target whose toolkit follows its torch: first torch, then the toolkit of its CUDA release with it."""

from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING

from tenv.core.errors import NoSolutionError
from tenv.core.versions import Version
from tenv.sources.interface import Chosen, Problem, sources
from tenv.targets.manifest import with_features
from tenv.targets.torch_cuda import follow, torch_cuda

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenv.locks.lock import Wheel

__all__ = ["following"]

_WITH_TORCH = ("conda", "wheels")
"""The sources of Python packages, conda's Python among them."""


def following(problem: Problem) -> Problem:
    """Return a problem with the toolkit of the torch that its requests select without one.

    Raises:
        NoSolutionError: There is no torch, one has no CUDA, or two Pythons or platforms have torches of different CUDA.
        NetworkError: An index does not respond.
    """
    base = follow(problem.manifest, None)
    chosen = Chosen()
    for source in sources():
        if source.section.key in _WITH_TORCH:
            source.choose(replace(problem, manifest=with_features(base)), chosen)
    return replace(problem, manifest=follow(base, _release(problem, chosen)))


def _release(problem: Problem, chosen: Chosen) -> Version:
    """Return the one CUDA release of the selected torches."""
    file, found = problem.manifest.file, list(_releases(chosen))
    for cuda, torch, platform, minor in found:
        if cuda is None:
            where = f"{torch.name} {torch.version} on {platform} with Python {minor}"
            raise NoSolutionError(
                f"{file}: the CUDA release follows torch, and {where} has no CUDA",
                hint="`tenv init NAME --torch 2.9+cu126` writes a target with a torch of PyTorch's own index"
                if len(problem.manifest.platforms) == 1
                else f"take {platform} out of `platforms`, or ask for a torch that has CUDA there",
            )
    named = {cuda: f"torch {torch.version} for Python {minor}" for cuda, torch, _, minor in found}
    releases = {cuda.major_minor: words for cuda, words in named.items() if cuda}
    if len(releases) > 1:
        listed = ", ".join(f"{torch} has {cuda}" for cuda, torch in releases.items())
        newest = found[-1][1].version.split(".")
        raise NoSolutionError(
            f"{file}: the CUDA release follows torch, and there are several: {listed}",
            hint=f'set torch = "{".".join(newest[:2])}.*" and a `python` that has wheels of it',
        )
    return Version(next(iter(releases)))


def _releases(chosen: Chosen) -> "Iterator[tuple[Version | None, Wheel, str, str]]":
    """Yield the torch of each platform and Python minor with its CUDA release, the oldest Python first."""
    for platform, wheels in chosen.files["wheels"].items():
        rows = [(Version(minor), minor, wheel) for wheel in wheels if wheel.name == "torch" for minor in wheel.python]
        for _, minor, wheel in sorted(rows, key=itemgetter(0)):
            yield torch_cuda(wheel.version, wheel.requires or (), platform, minor), wheel, platform, minor
