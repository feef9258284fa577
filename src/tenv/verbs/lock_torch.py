"""Lock a target whose toolkit follows its torch: first torch, then the toolkit of its CUDA release with it."""

from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass
from tenv.core.errors import NoSolutionError
from tenv.core.versions import Version
from tenv.sources.interface import Chosen, Problem, sources
from tenv.targets.manifest import CONDA_TORCHES, with_features
from tenv.targets.torch_cuda import conda_torch_cuda, follow, torch_cuda

if TYPE_CHECKING:
    from tenv.locks.lock import CondaPackage, Wheel

_WITH_TORCH = ("conda", "wheels")
"""The sources of Python packages, conda's Python among them."""


@dataclass(frozen=True, slots=True)
class _LockedTorch:
    """A selected torch."""

    words: str
    """Its name and version; of a conda package its build string, too."""
    version: str
    """Its version."""
    platform: str
    """Its platform."""
    minor: str
    """The Python minor; empty for libtorch without Python."""
    cuda: Version | None
    """Its CUDA release; None for a torch without CUDA."""
    conda: bool
    """Whether it is a conda package."""


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


def check_followed(problem: Problem, chosen: Chosen) -> None:
    """Refuse a selection whose torch has another CUDA than the toolkit that was laid beside it.

    Raises:
        NoSolutionError: It has: conda-forge has torches of several CUDA releases, and the toolkit led to another one.
    """
    wanted, cuda = problem.manifest.requirements.cuda, _release(problem, chosen)
    if wanted is None or cuda.major_minor == wanted.major_minor:
        return
    build = f"cuda{wanted.major_minor.replace('.', '')}*"
    raise NoSolutionError(
        f"{problem.manifest.file}: the toolkit of CUDA {wanted} leads to a torch of CUDA {cuda}",
        hint=f'name the build of torch in [dependencies]: pytorch = {{ version = "*", build = "{build}" }}',
    )


def _release(problem: Problem, chosen: Chosen) -> Version:
    """Return the one CUDA release of the selected torches."""
    file, found = problem.manifest.file, [*_wheels(chosen), *_packages(chosen)]
    if lacking := next((torch for torch in found if torch.cuda is None), None):
        raise NoSolutionError(
            f"{file}: the CUDA release follows torch, and {lacking.words} on {lacking.platform}"
            f"{f' with Python {lacking.minor}' if lacking.minor else ''} has no CUDA",
            hint=_without_cuda(problem, lacking),
        )
    releases = {torch.cuda.major_minor: torch for torch in found if torch.cuda}
    if not releases:
        raise NoSolutionError(f"{file}: the CUDA release follows torch, and no package of it was selected")
    if len(releases) > 1:
        listed = ", ".join(f"{torch.words} for Python {torch.minor} has {cuda}" for cuda, torch in releases.items())
        newest = found[-1].version.split(".")
        raise NoSolutionError(
            f"{file}: the CUDA release follows torch, and there are several: {listed}",
            hint=f'set torch = "{".".join(newest[:2])}.*" and a `python` that has wheels of it',
        )
    return Version(next(iter(releases)))


def _without_cuda(problem: Problem, torch: _LockedTorch) -> str:
    if torch.conda:
        return '`pytorch = { version = "*", build = "*cuda*" }` in [dependencies] asks for a build with CUDA'
    if len(problem.manifest.platforms) == 1:
        return (
            "`tenv init NAME --torch 2.9+cu126` writes a target with a torch of PyTorch's own index; "
            'without `cuda = "torch"`, this one is for CPUs'
        )
    return f"take {torch.platform} out of `platforms`, or ask for a torch that has CUDA there"


def _wheels(chosen: Chosen) -> Iterator[_LockedTorch]:
    """Yield the torch of each platform and Python minor, the oldest Python first."""
    wheels: tuple[Wheel, ...]
    for platform, wheels in chosen.files.get("wheels", {}).items():
        rows = [(Version(minor), minor, wheel) for wheel in wheels if wheel.name == "torch" for minor in wheel.python]
        for _, minor, wheel in sorted(rows, key=itemgetter(0)):
            cuda = torch_cuda(wheel.version, wheel.requires or (), platform, minor)
            yield _LockedTorch(f"torch {wheel.version}", wheel.version, platform, minor, cuda, conda=False)


def _packages(chosen: Chosen) -> Iterator[_LockedTorch]:
    """Yield the torch of each platform that is a conda package, once though it is split into several."""
    packages: tuple[CondaPackage, ...]
    for platform, packages in chosen.files.get("conda", {}).items():
        named = {package.name: package for package in packages}
        python = named.get("python")
        minor = ".".join(python.version.split(".")[:2]) if python else ""
        if torch := next((named[name] for name in CONDA_TORCHES if name in named), None):
            words = f"{torch.name} {torch.version} {torch.build}"
            yield _LockedTorch(words, torch.version, platform, minor, conda_torch_cuda(torch.build), conda=True)
