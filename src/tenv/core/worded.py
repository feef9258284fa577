"""Kinds: what code decides by, beside texts for people that no code reads.

A kind is a member of an enumeration, each with what it means. A text may be reworded; a kind stays.
"""

from enum import StrEnum
from typing import Self

__all__ = ["Worded"]


class Worded(StrEnum):
    """Kinds of one thing; each such enumeration has a member `OTHER` of the value ``other``.

    Attributes:
        text: What the kind means.
    """

    text: str

    def __new__(cls, value: str, text: str) -> Self:
        """Make a member of its value and what it means."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.text = text
        return member

    @classmethod
    def read(cls, value: str | None) -> Self:
        """Return the kind of a value; `OTHER` for none, and for one that only a newer tenv knows."""
        found = cls._value2member_map_.get(value)
        return found if isinstance(found, cls) else cls["OTHER"]
