"""Versions and ranges that compare as numbers and print as they were written.

Driver versions such as ``580.65.06`` lose their zero in ``packaging``, and with it the form that people
search for; so a version here keeps its text beside its numbers.
"""

import re
from dataclasses import dataclass, field
from functools import cache, total_ordering
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

__all__ = ["CondaRange", "Range", "Version", "is_release", "same_release"]

_VERSION = re.compile(r"\d+(\.\d+)*")
_CONDA_CLAUSE = re.compile(r"\s*(\*|(==|!=|<=|>=|~=|=|<|>)?\s*(\d+!)?\d[A-Za-z0-9_.+-]*\*?)\s*")
_CLAUSE = re.compile(r"\s*(?P<operator>===|==|~=|!=|<=|>=|<|>|=)?\s*(?P<version>[0-9][\w.!+*-]*)\s*")


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A dotted version; trailing zeros do not count (``12.1`` equals ``12.1.0``).

    Attributes:
        text: The version as written.
    """

    text: str
    _key: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not _VERSION.fullmatch(self.text):
            message = f"`{self.text}` is not a dotted version such as 12.1 or 580.65.06"
            raise ValueError(message)
        numbers = [int(part) for part in self.text.split(".")]
        while len(numbers) > 1 and numbers[-1] == 0:
            numbers.pop()
        object.__setattr__(self, "_key", tuple(numbers))

    @classmethod
    def find(cls, text: str) -> "Version | None":
        """Return the first dotted version in `text`, or None."""
        match = re.search(r"\d+(\.\d+)+", text)
        return cls(match.group()) if match else None

    @property
    def major(self) -> int:
        """The first number."""
        return self._key[0]

    @property
    def minor(self) -> int:
        """The second number, 0 when there is none."""
        return self._key[1] if len(self._key) > 1 else 0

    @property
    def major_minor(self) -> str:
        """``MAJOR.MINOR``, the grain at which CUDA releases are compatible."""
        return f"{self.major}.{self.minor}"

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Version) else NotImplemented

    def __lt__(self, other: "Version") -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key)


@cache  # the parents of targets are read again for each of them
def _specifiers(text: str) -> "SpecifierSet":
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # noqa: PLC0415 (late: 15 ms)

    clauses = []
    for clause in text.split(","):
        if clause.strip() in ("", "*"):
            continue
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            message = f"`{text}` is not a version range such as `*`, `3.11.*` or `>=11,<13`"
            raise ValueError(message)
        operator = match["operator"] or "=="
        clauses.append(("==" if operator == "=" else operator) + match["version"])
    try:
        return SpecifierSet(",".join(clauses))
    except InvalidSpecifier as error:
        message = f"`{text}` is not a version range such as `*`, `3.11.*` or `>=11,<13`"
        raise ValueError(message) from error


@dataclass(frozen=True, slots=True)
class Range:
    """A set of versions in the notation of manifests: ``*``, ``3.11.*``, ``1.2`` or ``>=11,<13``.

    A bare version means exactly that version, as it does in conda and pixi.

    Attributes:
        text: The range as written.
    """

    text: str

    def __post_init__(self) -> None:
        _ = self.specifiers  # a range that can't be read must fail where it is made

    @property
    def specifiers(self) -> "SpecifierSet":
        """The range for `packaging`; raises ValueError when it can't be read."""
        return _specifiers(self.text)

    def __contains__(self, version: object) -> bool:
        return self.specifiers.contains(str(version), prereleases=True)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class CondaRange:
    """A set of versions as conda writes it: ``*``, ``12.1.*``, ``1.2``, ``>=11,<13``, ``2.6.*|>=2.8,<3``.

    What it holds is for conda to say (`tenv.engine.records.satisfies`): its versions are not those of PEP 440.

    Attributes:
        text: The range as written.
    """

    text: str

    def __post_init__(self) -> None:
        clauses = re.split(r"[,|]", self.text)
        if not all(_CONDA_CLAUSE.fullmatch(clause) for clause in clauses):
            message = f"`{self.text}` is not a version range such as `*`, `3.11.*`, `>=11,<13` or `2.6.*|>=2.8`"
            raise ValueError(message)

    @property
    def spec(self) -> str:
        """The range as a match specification has it, in which a bare version needs its ``==``."""
        return re.sub(r"(?:^|(?<=[,|]))\s*(?=\d)([^,|*]+)(?=[,|]|$)", r"==\1", self.text)

    def __str__(self) -> str:
        return self.text


def is_release(text: str) -> bool:
    """Tell whether a text is a version as PyPI has them (PEP 440); conda's need not be."""
    from packaging.version import InvalidVersion  # noqa: PLC0415 (late: 11 ms)
    from packaging.version import Version as Release  # noqa: PLC0415

    try:
        Release(text)
    except InvalidVersion:
        return False
    return True


def same_release(one: str, other: str) -> bool:
    """Tell whether two texts are one version of a package (PEP 440): file names often say ``2023.03`` for 2023.3."""
    if one == other:
        return True
    from packaging.version import InvalidVersion  # noqa: PLC0415 (late: 11 ms, and seldom needed)
    from packaging.version import Version as Release  # noqa: PLC0415

    try:
        return Release(one) == Release(other)
    except InvalidVersion:
        return False
