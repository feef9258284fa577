"""Versions and ranges that compare as numbers and print as written.

``packaging`` drops the zero of driver versions such as ``580.65.06``, and users search for the full form. So a version
here keeps its text and its numbers.
"""

import operator
import re
from collections.abc import Callable
from dataclasses import field
from functools import cache, total_ordering
from typing import TYPE_CHECKING, Any

from tenv.core.dataclass import dataclass

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version as Release

VERSION_PATTERN = r"[0-9]+(\.[0-9]+)*"
"""A dotted version, for JSON schemas too: a pattern without named groups."""

_CONDA_ONE = r"\s*(\*|(==|!=|<=|>=|~=|=|<|>)?\s*([0-9]+!)?[0-9][A-Za-z0-9_.+-]*\*?)\s*"
_OPERATOR = r"===|==|~=|!=|<=|>=|<|>|="
_NUMBERS = r"[0-9][\w.!+*-]*"
_ONE = rf"\s*(({_OPERATOR})?\s*{_NUMBERS}|\*)?\s*"

RANGE_PATTERN = rf"{_ONE}(,{_ONE})*"
"""A range of versions, as far as a pattern can say: `Range` refuses some more."""

CONDA_RANGE_PATTERN = rf"{_CONDA_ONE}([,|]{_CONDA_ONE})*"
"""A range of conda's versions."""

_VERSION = re.compile(VERSION_PATTERN)
_CONDA_CLAUSE = re.compile(_CONDA_ONE)
_CLAUSE = re.compile(rf"\s*(?P<operator>{_OPERATOR})?\s*(?P<version>{_NUMBERS})\s*")

_PLAIN_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")
_PLAIN_CLAUSE = re.compile(r"\s*(?P<operator>==|!=|<=|>=|<|>|=)?\s*(?P<version>[0-9]+(\.[0-9]+)*)(?P<any>\.\*)?\s*")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A dotted version; trailing zeros do not count (``12.1`` equals ``12.1.0``)."""

    text: str
    """The version as written."""
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
        try:
            return cls(match.group()) if match else None
        except ValueError:  # Python reads no number of over 4,300 digits
            return None

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

    def __le__(self, other: "Version") -> bool:  # `total_ordering` would compare twice
        return self._key <= other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a plain version, without zeros at its end."""
    numbers = [int(number) for number in text.split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


@cache
def _plain(text: str) -> tuple[tuple[str, tuple[int, ...], int], ...] | None:
    """Return the clauses of a range of plain versions; None if it needs `packaging`, which takes 30 ms to load.

    A clause is its operator, the numbers of its version, and their count if it ends in ``.*``, else 0.
    """
    clauses = []
    for clause in text.split(","):
        if clause.strip() in ("", "*"):
            continue
        match = _PLAIN_CLAUSE.fullmatch(clause)
        if match is None:
            return None
        count = match["version"].count(".") + 1 if match["any"] else 0
        if count and match["operator"] not in (None, "=", "==", "!="):
            return None
        sign = match["operator"] if match["operator"] not in (None, "=") else "=="
        clauses.append((sign, _numbers(match["version"]), count))
    return tuple(clauses)


def _meets(release: tuple[int, ...], sign: str, wanted: tuple[int, ...], count: int) -> bool:
    if count:  # as many numbers of both as before the `.*`, padded with zeros
        release, wanted = (tuple((*numbers, *[0] * count)[:count]) for numbers in (release, wanted))
    return _COMPARE[sign](release, wanted)


@cache  # parents of targets are read again for each target
def _specifiers(text: str) -> "SpecifierSet":
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # late: 15 ms

    clauses = []
    for clause in text.split(","):
        if clause.strip() in ("", "*"):
            continue
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            message = f"`{text}` is not a version range such as `*`, `3.11.*` or `>=11,<13`"
            raise ValueError(message)
        sign = match["operator"] or "=="
        clauses.append(("==" if sign == "=" else sign) + match["version"])
    try:
        return SpecifierSet(",".join(clauses))
    except InvalidSpecifier as error:
        message = f"`{text}` is not a version range such as `*`, `3.11.*` or `>=11,<13`"
        raise ValueError(message) from error


@dataclass(frozen=True, slots=True)
class Range:
    """A set of versions in the notation of manifests: ``*``, ``3.11.*``, ``1.2`` or ``>=11,<13``.

    A bare version means exactly that version, as in conda and pixi.
    """

    text: str
    """The range as written."""

    def __post_init__(self) -> None:
        if _plain(self.text) is None:
            _ = self.specifiers  # an invalid range must fail at its creation

    @property
    def specifiers(self) -> "SpecifierSet":
        """The range for `packaging`; raises ValueError if it is invalid."""
        return _specifiers(self.text)

    def __contains__(self, version: object) -> bool:
        plain, text = _plain(self.text), str(version)
        if plain is not None and _PLAIN_VERSION.fullmatch(text):
            release = _numbers(text)
            return all(_meets(release, *clause) for clause in plain)
        return fits(self.specifiers, text)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class CondaRange:
    """A set of versions as conda writes it: ``*``, ``12.1.*``, ``1.2``, ``>=11,<13``, ``2.6.*|>=2.8,<3``.

    Its versions do not follow PEP 440, so conda decides which ones it contains (`tenv.rattler_api.records.satisfies`).
    """

    text: str
    """The range as written."""

    def __post_init__(self) -> None:
        clauses = re.split(r"[,|]", self.text)
        if not all(_CONDA_CLAUSE.fullmatch(clause) for clause in clauses):
            message = f"`{self.text}` is not a version range such as `*`, `3.11.*`, `>=11,<13` or `2.6.*|>=2.8`"
            raise ValueError(message)

    @property
    def spec(self) -> str:
        """The range in a match specification, where a bare version needs ``==``."""
        return re.sub(r"(?:^|(?<=[,|]))\s*(?=\d)([^,|*]+)(?=[,|]|$)", r"==\1", self.text)

    def __str__(self) -> str:
        return self.text


def fits(specifiers: "SpecifierSet", version: str) -> bool:
    """Return whether a version, pre-releases among them, lies in a range; False where either is none that can be read.

    Python reads no number of more than 4,300 digits, and `packaging` finds that out when it compares.
    """
    try:
        return specifiers.contains(version, prereleases=True)
    except ValueError:
        return False


def is_release(text: str) -> bool:
    """Return whether a text is a PEP 440 version; conda's versions need not be."""
    return _release(text) is not None


def same_release(one: str, other: str) -> bool:
    """Return whether two texts are the same PEP 440 version: file names often have ``2023.03`` for 2023.3."""
    if one == other:
        return True
    release = _release(one)
    return release is not None and release == _release(other)


def is_newer(one: str, other: str) -> bool:
    """Return whether a text is a newer PEP 440 version than another; where one of them is none, whether they differ."""
    new, old = _release(one), _release(other)
    return new > old if new and old else one != other


def _release(text: str) -> "Release | None":
    from packaging.version import Version as Release  # late: 11 ms and rarely needed

    try:
        return Release(text)
    except ValueError:  # InvalidVersion, or a number of more digits than Python reads
        return None
