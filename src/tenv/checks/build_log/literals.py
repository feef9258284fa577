"""Find literals that every match of a pattern contains, so that most lines are skipped without a regex search."""

import re
from functools import cache

__all__ = ["Sieve", "literal"]

_CLASSES = "AbBdDsSwWZ0123456789nrtfvxuUN"
_SHORTEST = 3


@cache
def literal(pattern: str) -> str:
    """Return the longest literal in every match of a pattern; empty if none is certain.

    Only text outside groups and alternations is certain.
    """
    runs, run, depth, index = [""], "", 0, 0
    while index < len(pattern):
        sign, index = pattern[index], index + 1
        plain = ""
        if sign == "\\":
            plain = "" if pattern[index] in _CLASSES else pattern[index]
            index += 1
        elif sign == "[":
            index = _class_end(pattern, index)
        elif sign == "|" and depth == 0:
            return ""
        elif sign in "()":
            depth += 1 if sign == "(" else -1
        elif sign in "?*{":
            run = run[:-1]  # the character before is optional
        elif sign not in "^$.+}":
            plain = sign
        if plain and depth == 0:
            run += plain
        else:
            runs.append(run)
            run = ""
        if sign == "{":
            index = pattern.index("}", index) + 1
    longest = max([*runs, run], key=len)
    return longest if len(longest) >= _SHORTEST else ""


def _class_end(pattern: str, index: int) -> int:
    """Return the end of a character class whose first character is at `index`."""
    index += pattern[index] == "^"
    index += pattern[index] == "]"
    while pattern[index] != "]":
        index += 2 if pattern[index] == "\\" else 1
    return index + 1


class Sieve:
    """Several patterns, searched at once."""

    def __init__(self, patterns: tuple[re.Pattern[str], ...]) -> None:
        self._patterns = tuple((literal(pattern.pattern), pattern) for pattern in patterns)

    def __call__(self, text: str) -> bool:
        """Return whether one of the patterns matches in a text."""
        return any(plain in text and pattern.search(text) is not None for plain, pattern in self._patterns)
