"""Plain text that a line must hold for a pattern to be found in it, so that most lines are passed over fast."""

import re
from functools import cache

__all__ = ["Sieve", "literal"]

_CLASSES = "AbBdDsSwWZ0123456789nrtfvxuUN"
_SHORTEST = 3


@cache
def literal(pattern: str) -> str:
    """Return the longest text that stands in every string in which a pattern is found; empty where none is sure.

    Only what stands outside brackets and has no choice beside it is sure.
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
            run = run[:-1]  # the sign before may be missing
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
    """Return where a class of signs ends, whose first sign stands at `index`."""
    index += pattern[index] == "^"
    index += pattern[index] == "]"
    while pattern[index] != "]":
        index += 2 if pattern[index] == "\\" else 1
    return index + 1


class Sieve:
    """Several patterns at once."""

    def __init__(self, patterns: tuple[re.Pattern[str], ...]) -> None:
        self._patterns = tuple((literal(pattern.pattern), pattern) for pattern in patterns)

    def __call__(self, text: str) -> bool:
        """Tell whether one of the patterns is found in a text."""
        return any(plain in text and pattern.search(text) is not None for plain, pattern in self._patterns)
