"""Convert pasted bytes to lines: decode them and remove what mail, Markdown and terminals add to a line."""

import codecs
import re
import unicodedata
from itertools import pairwise

from tenv.core.dataclass import dataclass

MOST = 1 << 18
"""How many characters of a text are read. A longer text is a log whose head describes the machine."""

_LONGEST = 2000
"""How many characters of a line are read."""


_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])")
_BLANK = re.compile(r"[\t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_UNSEEN = re.compile(r"[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff\x00-\x08\x0b-\x1f\x7f]")
_FULL_WIDTH = str.maketrans({chr(0xFF01 + number): chr(0x21 + number) for number in range(94)})
_ENTITIES = (("&gt;", ">"), ("&lt;", "<"), ("&nbsp;", " "), ("&quot;", '"'), ("&#39;", "'"), ("&amp;", "&"))
_DIGIT = re.compile(r"\d")
"""A digit of any script; numbers are converted to ASCII digits."""

_STAMP = re.compile(
    r"^\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?(?: |$)(?:- \S+ - [A-Z]+ - )?"
)
"""The time of a line, and the logger and the level that Python's logging may put behind it."""

_NUMBER = re.compile(r"^\s*(?P<number>\d{1,5})(?:[:|]|(?=[ ]|$)) ?")
_ENOUGH = 4
"""How many lines with something in front of them make it the work of a log or a viewer."""
_MOSTLY = 0.8

_QUOTED = re.compile(r"^(?:\s*>)+ ?")


@dataclass(frozen=True, slots=True)
class Line:
    """A cleaned line of a text."""

    number: int
    """Its number in the text, from 1."""
    text: str
    """The line."""


def decode(raw: bytes) -> str:
    """Return pasted bytes as text; undecodable bytes become replacement characters."""
    return raw.decode(encoding(raw), "replace")


def encoding(head: bytes) -> str:
    """Return the encoding of a text by its first bytes.

    PowerShell writes files in UTF-16, and some editors drop the byte order mark.
    """
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    return "utf-16-le" if head[1:512:2].count(0) > len(head[:512]) // 4 else "utf-8"


def lines(text: str) -> list[Line]:
    """Return the lines of a text without escapes, entities and quote marks; full-width characters are converted."""
    found = []
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text[:MOST]), start=1):
        plain = _ESCAPES.sub("", line[:_LONGEST]).translate(_FULL_WIDTH)
        plain = _UNSEEN.sub("", _BLANK.sub(" ", plain))
        if "&" in plain:
            for entity, sign in _ENTITIES:
                plain = plain.replace(entity, sign)
        if not plain.isascii():
            plain = _DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), unicodedata.normalize("NFC", plain))
        found.append(Line(number, _QUOTED.sub("", plain).rstrip()))
    return _without_fronts(found)


def _without_fronts(found: list[Line]) -> list[Line]:
    """Return lines without the time stamp or the line number that a log or a viewer puts in front of most of them."""
    full = [line for line in found if line.text]
    stamped = sum(_STAMP.match(line.text) is not None for line in full)
    if stamped >= max(_ENOUGH, _MOSTLY * len(full)):
        return [Line(line.number, _STAMP.sub("", line.text)) for line in found]
    numbers = [int(match["number"]) if (match := _NUMBER.match(line.text)) else -1 for line in full]
    counted = sum(after == before + 1 for before, after in pairwise(numbers))
    if counted >= max(_ENOUGH, _MOSTLY * (len(full) - 1)):
        return [Line(line.number, _NUMBER.sub("", line.text)) for line in found]
    return found
