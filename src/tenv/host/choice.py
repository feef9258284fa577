"""Which of a machine's toolkits and compilers a target takes that asks for them in ``[system]``, and why no other.

Pure functions of the host report: the rules ask them what would be taken, the system provider takes it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tenv.core.versions import Range, Version
from tenv.host.report import Compiler, Lead, ProblemKind, Toolkit

__all__ = ["GccPair", "Selection", "choose_gcc", "choose_toolkit"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Selection(Generic[T]):
    """What is taken, and why the others are not.

    Attributes:
        taken: The best that fits; None if none does.
        refused: A sentence for each of the others that does not fit.
    """

    taken: T | None
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GccPair:
    """A gcc and the g++ of the same version.

    Attributes:
        version: Their version.
        gcc: The C compiler.
        gxx: The C++ compiler.
        found_by: What led to them.
    """

    version: Version
    gcc: str
    gxx: str
    found_by: str


def choose_toolkit(toolkits: Iterable[Toolkit], accepted: Range, kept: str = "") -> Selection[Toolkit]:
    """Choose a CUDA toolkit.

    What a variable names comes first (a person or an environment module has chosen it), then the one that was taken
    before, then the machine's default (nvcc on PATH, ``/usr/local/cuda``), then the highest version.

    Args:
        toolkits: What is there.
        accepted: The releases that will do.
        kept: The folder of the toolkit that the environment was made with, or an empty string.
    """
    fits, refused = [], []
    for toolkit in toolkits:
        if fault := _fault(toolkit, accepted):
            refused.append(f"{toolkit.path}: {fault}")
        else:
            fits.append(toolkit)

    def rank(toolkit: Toolkit) -> tuple[bool, bool, bool, Version, str]:
        named = toolkit.led_by(Lead.CUDA_VARIABLE, Lead.MODULE_VARIABLE)
        default = toolkit.led_by(Lead.PATH, Lead.DEFAULT_FOLDER, Lead.ALTERNATIVE)
        return named, toolkit.path == kept, default, toolkit.version or Version("0"), toolkit.path

    return Selection(max(fits, key=rank, default=None), tuple(refused))


def _fault(toolkit: Toolkit, accepted: Range) -> str:
    """Return why a toolkit won't do, an empty string if it does."""
    if toolkit.environment:
        return f"is a part of the environment {toolkit.environment}"
    if toolkit.version is None or not toolkit.compiles:
        return toolkit.problems[0].text if toolkit.problems else "its version is not known"
    exact = accepted.text.strip(" =") == toolkit.version.major_minor  # `12.1` means the release with its updates
    if toolkit.version not in accepted and not exact:
        return f"{toolkit.version} is not {accepted}"
    mixed = next((problem for problem in toolkit.problems if problem.kind is ProblemKind.HEADERS), None)
    if mixed:
        return mixed.text
    if toolkit.components and "cuda_cudart" not in dict(toolkit.components):
        return "there is no libcudart in it"
    return ""


def choose_gcc(
    compilers: Sequence[Compiler], accepted: Range, most: int | None = None, kept: str = ""
) -> Selection[GccPair]:
    """Choose a gcc and its g++: those that CXX or CC name, then those taken before, the default, the newest.

    Args:
        compilers: What is there.
        accepted: The versions that will do.
        most: The highest major that the CUDA toolkit accepts as its host compiler; None for no limit.
        kept: The g++ that the environment was made with, or an empty string.
    """
    fits, refused = [], []
    for gxx in (compiler for compiler in compilers if compiler.kind == "g++"):
        gcc = next((c for c in compilers if c.kind == "gcc" and c.version == gxx.version), None)
        if gxx.version not in accepted:
            refused.append(f"{gxx.path}: {gxx.version} is not {accepted}")
        elif most is not None and gxx.version.major > most:
            refused.append(f"{gxx.path}: {gxx.version} is newer than what the nvcc taken accepts (GCC {most} at most)")
        elif gcc is None:
            refused.append(f"{gxx.path}: there is no gcc {gxx.version} beside it")
        else:
            fits.append((gxx, GccPair(gxx.version, gcc.path, gxx.path, f"{gxx.ways}; {gcc.ways}")))
    lonely = {c.version for c in compilers if c.kind == "gcc"} - {c.version for c in compilers if c.kind == "g++"}
    refused += [f"{c.path}: there is no g++ {c.version} beside it" for c in compilers if c.version in lonely]

    def rank(found: tuple[Compiler, GccPair]) -> tuple[bool, bool, bool, Version]:
        gxx, _ = found
        named = gxx.led_by(Lead.CXX, Lead.CUDAHOSTCXX)
        return named, gxx.path == kept, gxx.default, gxx.version

    best = max(fits, key=rank, default=None)
    return Selection(best[1] if best else None, tuple(refused))
