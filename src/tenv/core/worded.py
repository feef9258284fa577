"""Kinds: enumerations for decisions, each with a text for users.

No code reads the text of a kind. A text may be reworded; a kind stays.
"""

from enum import StrEnum
from typing import Self


class Worded(StrEnum):
    """Base of kinds; each enumeration has a member `OTHER` with the value ``other``."""

    text: str
    """The meaning of the kind."""

    def __new__(cls, value: str, text: str) -> Self:
        """Create a member from its value and its meaning."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.text = text
        return member

    @classmethod
    def read(cls, value: str | None) -> Self:
        """Return the kind of a value; `OTHER` if it is missing or unknown to this tenv."""
        found = cls._value2member_map_.get(value)
        return found if isinstance(found, cls) else cls._member_map_["OTHER"]  # type: ignore[return-value]
