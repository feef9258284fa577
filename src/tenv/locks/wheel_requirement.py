"""A requirement of a wheel, whose marker is evaluated once for each answer that it can have."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from tenv.core.names import normalize
from tenv.core.wheel_platforms import evaluated

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

__all__ = ["WheelRequirement", "requirement_of", "sole_extra"]

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
