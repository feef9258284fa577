"""Select the host's toolkit and compilers for a target's ``[system]``, with the reason against each other one.

Pure functions of the host report: rules use them to predict the selection, and the system source makes it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from tenv.core.dataclass import dataclass
from tenv.core.versions import Range, Version
from tenv.host.report import Compiler, Lead, ProblemKind, Rocm, Toolkit

T = TypeVar("T")
F = TypeVar("F", Toolkit, Rocm)


@dataclass(frozen=True, slots=True)
class Selection(Generic[T]):
    """The selection and why the others were rejected."""

    taken: T | None
    """The best that fits; None if none fits."""
    refused: tuple[str, ...] = ()
    """A sentence for each one that does not fit."""


@dataclass(frozen=True, slots=True)
class GccPair:
    """A gcc and the g++ of the same version."""

    version: Version
    """Their version."""
    gcc: str
    """The C compiler."""
    gxx: str
    """The C++ compiler."""
    found_by: str
    """How they were found."""


def choose_toolkit(toolkits: Iterable[Toolkit], accepted: Range, kept: str = "") -> Selection[Toolkit]:
    """Select a CUDA toolkit.

    The order: named by a variable (a user or an environment module selected it), selected before, the host's default
    (nvcc on PATH, ``/usr/local/cuda``), highest version.

    Args:
        toolkits: The detected ones.
        accepted: The accepted releases.
        kept: The folder of the toolkit that the environment was created with, or an empty string.
    """

    def rank(toolkit: Toolkit) -> tuple[bool, bool, bool, Version, str]:
        named = toolkit.led_by(Lead.CUDA_VARIABLE, Lead.MODULE_VARIABLE)
        default = toolkit.led_by(Lead.PATH, Lead.DEFAULT_FOLDER, Lead.ALTERNATIVE)
        return named, toolkit.path == kept, default, toolkit.version or Version("0"), toolkit.path

    return _select(toolkits, lambda toolkit: _fault(toolkit, accepted), rank)


def _select(found: Iterable[F], fault: Callable[[F], str], rank: Callable[[F], Any]) -> Selection[F]:
    """Return the best of those without a fault, and the fault of each other one."""
    faults = [(one, fault(one)) for one in found]
    best = max((one for one, text in faults if not text), key=rank, default=None)
    return Selection(best, tuple(f"{one.path}: {text}" for one, text in faults if text))


def _fault(toolkit: Toolkit, accepted: Range) -> str:
    """Return why a toolkit does not fit; an empty string if it fits."""
    if toolkit.environment:
        return f"is part of the environment {toolkit.environment}"
    if toolkit.version is None or not toolkit.compiles:
        return toolkit.problems[0].text if toolkit.problems else "its version is unknown"
    if fault := _version_fault(toolkit.version, accepted):
        return fault
    mixed = next((problem for problem in toolkit.problems if problem.kind is ProblemKind.HEADERS), None)
    if mixed:
        return mixed.text
    if toolkit.components and "cuda_cudart" not in dict(toolkit.components):
        return "it has no libcudart"
    return ""


def choose_rocm(rocms: Iterable[Rocm], accepted: Range, kept: str = "") -> Selection[Rocm]:
    """Select a ROCm, in the order of `choose_toolkit`: ROCM_PATH, selected before, the default, highest version.

    Args:
        rocms: The detected ones.
        accepted: The accepted releases.
        kept: The folder of the ROCm that the environment was created with, or an empty string.
    """

    def rank(one: Rocm) -> tuple[bool, bool, bool, Version, str]:
        default = one.led_by(Lead.ROCM_SDK, Lead.DEFAULT_FOLDER, Lead.PATH)
        return one.led_by(Lead.ROCM_VARIABLE), one.path == kept, default, one.version or Version("0"), one.path

    return _select(rocms, lambda one: _rocm_fault(one, accepted), rank)


def _rocm_fault(one: Rocm, accepted: Range) -> str:
    """Return why a ROCm does not fit; an empty string if it fits."""
    if one.environment:
        return f"is part of the environment {one.environment}"
    if one.version is None:
        return one.problems[0] if one.problems else "its version is unknown"
    return _version_fault(one.version, accepted) or (one.problems[0] if one.problems else "")


def _version_fault(version: Version, accepted: Range) -> str:
    exact = accepted.text.strip(" =") == version.major_minor  # `12.1` means the release and its updates
    return "" if version in accepted or exact else f"{version} is not {accepted}"


def fitting_gcc(compilers: Sequence[Compiler], least: int, most: int) -> GccPair | None:
    """Return the gcc to take in the place of the default compiler; None where that fits, or no gcc does.

    Args:
        compilers: The detected ones.
        least: The oldest major that the CUDA toolkit accepts as its host compiler.
        most: The newest one.
    """
    default = next((one for one in compilers if one.default and one.kind in ("g++", "clang++")), None)
    if default is None or default.kind != "g++" or least <= default.version.major <= most:
        return None
    return choose_gcc(compilers, Range(f">={least},<{most + 1}")).taken


def choose_gcc(
    compilers: Sequence[Compiler], accepted: Range, most: int | None = None, kept: str = ""
) -> Selection[GccPair]:
    """Select a gcc and its g++: named by CXX or CC, else selected before, else the default, else the newest.

    Args:
        compilers: The detected ones.
        accepted: The accepted versions.
        most: The highest major that the CUDA toolkit accepts as its host compiler; None for no limit.
        kept: The g++ that the environment was created with, or an empty string.
    """
    fits, refused = [], []
    for gxx in (compiler for compiler in compilers if compiler.kind == "g++"):
        gcc = next((c for c in compilers if c.kind == "gcc" and c.version == gxx.version), None)
        if gxx.version not in accepted:
            refused.append(f"{gxx.path}: {gxx.version} is not {accepted}")
        elif most is not None and gxx.version.major > most:
            refused.append(f"{gxx.path}: {gxx.version} is newer than the selected nvcc accepts (GCC {most} at most)")
        elif gcc is None:
            refused.append(f"{gxx.path}: it has no matching gcc {gxx.version}")
        else:
            fits.append((gxx, GccPair(gxx.version, gcc.path, gxx.path, f"{gxx.ways}; {gcc.ways}")))
    lonely = {c.version for c in compilers if c.kind == "gcc"} - {c.version for c in compilers if c.kind == "g++"}
    refused += [f"{c.path}: it has no matching g++ {c.version}" for c in compilers if c.version in lonely]

    def rank(found: tuple[Compiler, GccPair]) -> tuple[bool, bool, bool, Version]:
        gxx, _ = found
        named = gxx.led_by(Lead.CXX, Lead.CUDAHOSTCXX)
        return named, gxx.path == kept, gxx.default, gxx.version

    best = max(fits, key=rank, default=None)
    return Selection(best[1] if best else None, tuple(refused))
