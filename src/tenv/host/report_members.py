"""Read many host reports whose texts have most members in common: each distinct text of a member is parsed once.

The hosts of a fleet differ in a few values. A report is walked from member to member: where the text of a known member
stands, with the comma or brace behind it, the member is that one, since JSON leaves no other reading of the same text
between two members. Whatever is not plain (a fault, another schema, another envelope) is left to `json` and to
`tenv.host.report_json`, which explain it.
"""

import re
from collections.abc import Callable, Sequence
from json import JSONDecoder
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from tenv.core.errors import HostReportError
from tenv.host.field import host_fields
from tenv.host.interface import Fact, Missing
from tenv.host.report import HostReport
from tenv.host.report_json import SCHEMA, UNREPORTED, read_value

__all__ = ["Member", "MemberReader", "Members", "to_report"]

_REMEMBERED = 1 << 9
_ALIKE = 12
"""Members of one key that are tried by their texts; a key with more has most likely another value in each report."""
_KEY = re.compile(r'[ \t\n\r]*"')
_COLON = re.compile(r"[ \t\n\r]*:[ \t\n\r]*")
_END = re.compile(r"[ \t\n\r]*([,}])")
_ENDS = frozenset(",}")
_START = re.compile(r"[ \t\n\r]*\{")
_MARKS = {"schema": (SCHEMA, -1), "command": ("host", -2)}
"""The members that say what a report is: the value of each that is plain, and its number."""


class Member:
    """A member of a report, or of its envelope.

    Attributes:
        name: Its key.
        text: Its text with the comma or the brace behind it; of an inner report, up to its opening brace.
        key: The part of it in front of its value.
        fact: The value of the field of that name; None for a member that is no field.
        number: What tells it from others of its name (see `MemberReader`); negative for what says what a report is.
        opens: Whether it is an inner report.
        special: Whether it is an inner report or the last member of its object.
        next: The member that stood behind it last time.
        alike: The few members that have begun with the same key; a list that they share.
    """

    __slots__ = ("alike", "fact", "key", "name", "next", "number", "opens", "size", "special", "text")

    def __init__(self, name: str, key: str, text: str, *, opens: bool = False) -> None:
        self.name = name
        self.key = key
        self.text = text
        self.size = len(text)
        self.opens = opens
        self.special = opens or text.endswith("}")
        self.fact: Fact[Any] | Missing | None = None
        self.number = 0
        self.next: Member | None = None
        self.alike: Sequence[Member] = ()


class Members(list[Member]):
    """The members of a report in the order of its text.

    Attributes:
        text: The text.
        start: Where the report begins in it, with its envelope.
    """

    __slots__ = ("start", "text")

    def __init__(self, text: str, start: int) -> None:
        super().__init__()
        self.text = text
        self.start = start

    def value(self) -> object:
        """Return the JSON value of the report with its envelope."""
        value: object = JSONDecoder().raw_decode(self.text, self.start)[0]
        return value


class MemberReader:
    """Reads reports; it remembers the members of those before."""

    def __init__(self, number: Callable[[str, Fact[Any] | Missing], int]) -> None:
        """Prepare to read.

        Args:
            number: Returns a number for the value of a field, the same one only for values that may be taken for
                equal, and none of a value of another field except 0.
        """
        self._number = number
        self._known: dict[str, Member] = {}
        self._alike: dict[str, list[Member]] = {}
        self._changing: set[str] = set()
        self._first = Member("", "", "")
        self._fields = host_fields()
        self._scan: Callable[[str, int], tuple[object, int]] = JSONDecoder().scan_once  # type: ignore[attr-defined]

    def forget(self) -> None:
        """Forget all members, after a change of what `number` returns."""
        self._forget_members()
        self._first = Member("", "", "")

    def read(self, text: str, at: int = 0) -> tuple[Members, int] | None:
        """Return the members of the report that begins at a place of a text, and its end; None if it is not plain.

        The members do not yet make a report: see `to_report`.
        """
        start = _START.match(text, at)
        if start is None:
            return None
        try:
            members, inner, end = self._object(Members(text, start.end() - 1), start.end(), self._first)
        except (ValueError, StopIteration, RecursionError, HostReportError):
            return None
        if inner is None:
            return members, end
        return (inner, end) if any(member.name == "command" for member in members) else None

    def _object(
        self, found: Members, at: int, last: Member, *, outer: bool = True
    ) -> tuple[Members, Members | None, int]:
        """Return the members of an object from its first one on, those of the report in it, and its end."""
        text, inner = found.text, None
        while True:
            member = last.next
            if member is None:
                member = last.next = self._parsed(text, at)
            elif not text.startswith(member.text, at):
                before, member = member, self._other(text, at, member)
                last.next = member
                if member.next is None:  # what follows is most likely the same
                    member.next = before.next
            found.append(member)
            at += member.size
            last = member
            if not member.special:
                continue
            if not member.opens:
                return found, inner, at
            if not outer or inner is not None:
                raise ValueError(at)
            inner, _, at = self._object(Members(text, found.start), at, member, outer=False)
            end = _END.match(text, at)
            if end is None:
                raise ValueError(at)
            at, last = end.end(), inner[-1]
            if end[1] == "}":
                return found, inner, at

    def _parsed(self, text: str, start: int) -> Member:
        """Return the member at a place; raises an error for what is none."""
        key = _KEY.match(text, start)
        if key is None:
            raise ValueError(start)
        name, at = scanstring(text, key.end(), True)
        colon = _COLON.match(text, at)
        if colon is None:
            raise ValueError(at)
        return self._value(text, start, colon.end(), name, text[start : colon.end()])

    def _other(self, text: str, start: int, expected: Member) -> Member:
        """Return the member at a place where another one was expected, most likely of the same name."""
        for member in expected.alike:
            if text.startswith(member.text, start):
                return member
        if text.startswith(expected.key, start):
            return self._value(text, start, start + len(expected.key), expected.name, expected.key)
        return self._parsed(text, start)

    def _value(self, text: str, start: int, at: int, name: str, key: str) -> Member:
        """Return the member whose value is at a place."""
        if name == "data":  # the report in an envelope
            if not text.startswith("{", at):
                raise ValueError(at)
            whole = key + "{"
            return self._known.get(whole) or self._remember(Member(name, key, whole, opens=True))
        value, end = self._scan(text, at)
        if text[end : end + 1] in _ENDS:
            end += 1
        elif behind := _END.match(text, end):
            end = behind.end()
        else:
            raise ValueError(end)
        whole = text[start:end]
        return self._known.get(whole) or self._remember(self._read(Member(name, key, whole), value))

    def _read(self, member: Member, value: object) -> Member:
        """Return a member with its value; raises an error for one that is not plain."""
        if member.name in self._fields:
            member.fact = read_value(value, member.name, self._fields[member.name])
            member.number = self._number(member.name, member.fact)
        elif member.name in _MARKS:
            plain, member.number = _MARKS[member.name]
            if value != plain or type(value) is not type(plain):
                raise ValueError(value)
        return member

    def _remember(self, member: Member) -> Member:
        if member.number == 0 and member.key in self._changing:  # the name of each host
            return member
        if len(self._known) >= _REMEMBERED:
            self._forget_members()
        self._known[member.text] = member
        alike = self._alike.setdefault(member.key, [])
        if len(alike) < _ALIKE:
            member.alike = alike
            alike.append(member)
        else:
            self._changing.add(member.key)
        return member

    def _forget_members(self) -> None:
        for kept in (self._known, self._alike, self._changing):
            kept.clear()


def to_report(members: Members) -> HostReport | None:
    """Return the report of members; None if they do not say that they are one.

    As in `json`, the last of several members of one name counts.
    """
    names = {member.name for member in members}
    if "schema" not in names or "command" in names:
        return None
    unreported = dict.fromkeys(host_fields(), UNREPORTED)
    return HostReport(**{**unreported, **{member.name: member.fact for member in members if member.fact is not None}})
