"""A requirement of a wheel, whose marker is evaluated once for each answer that it can have; the torch of a wheel."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass
from tenv.core.names import normalize
from tenv.core.versions import Version, fits
from tenv.core.wheel_platforms import evaluated

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

_LITERAL = re.compile(r"""["']([^"']*)["']""")
_EXTRA = re.compile(r"""\bextra\s*[=!]=\s*["']([^"']+)["']|["']([^"']+)["']\s*[=!]=\s*extra\b""")
_VARIABLE = re.compile(r"[a-z][a-z_]+")
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_LIMIT = r"(?:[<>]=?|[!=]=) *[0-9]{1,9}(?:\.[0-9]{1,9})*"
_OF_EXTRA = re.compile(
    rf"{_NAME}(?:\[{_NAME}(?:, *{_NAME})*\])? *(?:{_LIMIT}(?:, *{_LIMIT})*)? *"
    rf"; *extra *== *(?:'({_NAME})'|\"({_NAME})\")"
)
"""A valid requirement whose marker is the name of an extra alone, as most are."""

_TORCH = re.compile(r"(?<![a-z])(?:torch|pt)(\d+(?:\.\d+)*)")
_CUDA = re.compile(r"(?<![a-z])cu(?:da)?(\d+(?:\.\d+)?)")
_ABI = re.compile(r"abi(true|false)")
_OTHERS = re.compile(r"rocm|hip|xpu|npu|musa")
_CPU = re.compile(r"(?<![a-z])cpu(?![a-z])")
_NEW_ABI = Version("2.7")
"""The first torch all of whose wheels for Linux have the new C++ ABI: pytorch.org/blog/pytorch-2-7, April 2025."""


class WheelRequirement:
    """A requirement in the metadata of a wheel.

    A lock has hundreds of them, each of which is held against every extra of its wheel, every platform and every
    Python: a marker is evaluated once for the values of the variables that it names, and extras that it does not name
    all count as none.

    Attributes:
        name: The normalized name of the required package.
        extras: The normalized extras that are asked of it.
        specifier: The versions that fit.
        is_conditional: Whether it has a marker.
        named: The normalized extras that its marker names.
    """

    def __init__(self, requirement: "Requirement") -> None:
        self.name = normalize(requirement.name)
        self.extras = tuple(map(normalize, requirement.extras))
        self.specifier: SpecifierSet = requirement.specifier
        self._marker = requirement.marker
        self.is_conditional = requirement.marker is not None
        text = str(requirement.marker or "")
        self._variables = sorted({*_VARIABLE.findall(_LITERAL.sub("", text))} - {"and", "or", "not", "in", "extra"})
        named = {normalize(literal) for literal in _LITERAL.findall(text)}
        # A comparison with nothing, or by a part of a text, separates extras that the marker does not name.
        self._named = None if "" in named or " in " in text else named
        self.named: frozenset[str] = frozenset(normalize(one or other) for one, other in _EXTRA.findall(text))
        self._answers: dict[tuple[str | None, ...], bool] = {}

    def holds(self, values: Mapping[str, str], extra: str) -> bool:
        """Return whether the marker is true.

        Args:
            values: The values of the marker environment.
            extra: The normalized extra that is asked of the wheel; empty for none.
        """
        if self._marker is None:
            return True
        asked = extra if self._named is None or extra in self._named else ""
        key = (asked, *map(values.get, self._variables))
        if key not in self._answers:
            self._answers[key] = evaluated(self._marker, {**values, "extra": asked})
        return self._answers[key]


@lru_cache(maxsize=4096)
def requirement_of(text: str) -> WheelRequirement | None:
    """Return a parsed requirement; None for an old form outside the standard."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return WheelRequirement(Requirement(text))
    except InvalidRequirement:
        return None


@lru_cache(maxsize=4096)
def sole_extra(text: str) -> str:
    """Return the normalized extra that a plain requirement is of; empty for one whose marker has to be evaluated.

    Two of three requirements are of an extra that nobody asks for: to parse one takes twenty times as long as this.
    """
    match = _OF_EXTRA.fullmatch(text)
    return normalize(match[1] or match[2]) if match else ""


@dataclass(frozen=True, slots=True)
class Torch:
    """The torch of a lock."""

    version: str
    """Its version."""
    cuda: Version | None
    """The CUDA release that it is built for; None for none."""

    @property
    def is_stable(self) -> bool:
        """Whether it is no nightly, whose kernels fit that one alone."""
        return re.fullmatch(r"\d+(\.\d+)+", self.release) is not None

    @property
    def release(self) -> str:
        """Its version without the local part."""
        return self.version.partition("+")[0]


def overridden(requires: tuple[str, ...] | None, overrides: Iterable[str]) -> tuple[str, ...] | None:
    """Return the requirements of a wheel with the versions and extras of overrides, where the markers of both hold.

    Args:
        requires: The requirements; None if unknown.
        overrides: The lines that replace requirements, as in uv: https://docs.astral.sh/uv/concepts/resolution/. uv
            0.13 takes the extras of the line, too: `uvicorn>=0.20` takes `[standard]` off `uvicorn[standard]`.
    """
    from packaging.requirements import Requirement  # late: 34 ms

    instead: dict[str, list[Requirement]] = {}
    for line in overrides:
        instead.setdefault(normalize(Requirement(line).name), []).append(Requirement(line))
    if not instead or requires is None:
        return requires
    found = list[str]()
    for text in requires:
        row = requirement_of(text)
        if row is None or row.name not in instead:
            found.append(text)
            continue
        marker = str(Requirement(text).marker or "")
        for one in instead[row.name]:
            both = " and ".join(f"({part})" for part in (marker, str(one.marker or "")) if part)
            extras = f"[{','.join(sorted(one.extras))}]" if one.extras else ""
            found.append(f"{row.name}{extras}{one.specifier}" + (f" ; {both}" if both else ""))
    return tuple(found)


def torch_of(version: str, requires: Iterable[str], platform: str, python: str) -> Torch:
    """Return the torch of a wheel by its version and its requirements, for a platform and a Python minor."""
    from tenv.targets.torch_cuda import torch_cuda  # late: only for packages that are compiled against a torch

    return Torch(version, torch_cuda(version, requires, platform, python))


def names_torch(version: str, requires: tuple[str, ...], values: Mapping[str, str], torch: Torch) -> bool:
    """Return whether a wheel names a torch and its CUDA as those that it was compiled against, and no others.

    The local part of its version names them (``+pt211cu130``, ``+cu12torch2.8cxx11abiTRUE``), or a requirement with
    ``==`` does (torchvision's ``+cu130`` beside ``torch==2.11.0``). A wheel that names one of the two alone fits
    nothing: most kernels are compiled for one release, and neither a tag nor a range of versions names it.

    Args:
        version: The version of the wheel.
        requires: Its requirements.
        values: The values of the marker environment.
        torch: The torch.
    """
    local = version.partition("+")[2].lower()
    asked = [
        row for text in requires if (row := requirement_of(text)) and row.name == "torch" and row.holds(values, "")
    ]
    if _OTHERS.search(local) or not all(fits(row.specifier, torch.version) for row in asked):
        return False
    pins = [clause for row in asked for clause in row.specifier if clause.operator in ("==", "===")]
    exact = "+" in torch.version and any(clause.version == torch.version for clause in pins)
    torches, cudas, abis = _TORCH.findall(local), _CUDA.findall(local), _ABI.findall(local)
    if not all(_is_torch(text, torch.release) for text in torches) or not (torches or pins):
        return False
    if abis and (abis != ["true"] or Version(torch.release) < _NEW_ABI):
        return False
    if torch.cuda is None:
        return not cudas and (exact or (bool(_CPU.search(local)) and torch.version.partition("+")[2] in ("", "cpu")))
    return not _CPU.search(local) and all(_is_cuda(text, torch.cuda) for text in cudas) and bool(cudas or exact)


def _is_torch(text: str, release: str) -> bool:
    """Return whether ``2.8``, ``2.8.0``, ``28`` or ``280`` names a release."""
    parts = release.split(".")
    if "." in text:
        named = text.split(".")
        return parts[: len(named)] == named
    return text in ("".join(parts[:2]), "".join(parts[:3]))


def _is_cuda(text: str, cuda: Version) -> bool:
    """Return whether ``13``, ``130`` or ``13.0`` names a release; a major alone names each of its minors."""
    if "." in text:
        return text == cuda.major_minor
    return text in (str(cuda.major), cuda.major_minor.replace(".", ""))
