"""The release of ROCm that a log shows, and the standing of the name in a line by the table of HIP's names."""

import re
from collections import deque
from collections.abc import Sequence

from tenv.checks.build_log.log_lines import LogLine, Sieve
from tenv.checks.build_log.source_places import named_place
from tenv.core.versions import Version
from tenv.facts.build_failures import BuildFailure, BuildFailureTable
from tenv.facts.hip_names import NameStanding

_AS_NUMBER = re.compile(r"(\d{1,2})(\d\d)\d\d")
"""ROCM_VERSION of a macro, 60304 for 6.3.4."""
_OF_HIP, _OF_ROCM = re.compile(r"4\.4\b"), "4.5"
"""The version of HIP in ROCm 4.5: the one of all since ROCm 3.5 whose number is not ROCm's."""
_NAMES = ("name", "symbol")
_MOST = 1000  # changes from one release to another that are kept


class ReleaseInLog:
    """The releases of ROCm that the lines of a log name, each from a line on."""

    def __init__(self, patterns: tuple[re.Pattern[str], ...]) -> None:
        self._search = Sieve(patterns).search
        self._found = deque[tuple[int, Version]](maxlen=_MOST)
        self._last = "\n"  # the words that named the last one: nearly all lines of a build with HIP have them

    def read(self, line: LogLine) -> None:
        """Note the release that a line names."""
        if self._last not in line.text and (match := self._search(line.text)):
            self._last = match.group()
            number = _AS_NUMBER.fullmatch(match["release"])
            text = f"{number[1]}.{int(number[2])}" if number else match["release"]
            version = Version(_OF_ROCM if _OF_HIP.match(text) else text)
            if not self._found or self._found[-1][1] != version:
                self._found.append((line.number, version))

    def at(self, line: LogLine) -> Version | None:
        """Return the release in use at a line: the last that was named up to it, else the first after it."""
        before = [version for number, version in self._found if number <= line.number]
        return before[-1] if before else self._found[0][1] if self._found else None


def values(patterns: Sequence[re.Pattern[str]], text: str) -> dict[str, str]:
    """Return the values of the named groups of the patterns that match in a text."""
    found = (pattern.search(text) for pattern in patterns)
    return {name: value for match in found if match for name, value in match.groupdict().items() if value}


def standing_of(
    failure: BuildFailure, text: str, table: BuildFailureTable, here: Version | None
) -> tuple[NameStanding, dict[str, str]] | None:
    """Return the standing of the name in a line, with the values for slots; None without one.

    Args:
        failure: The row that matches in the line.
        text: The line.
        table: The table of the row.
        here: The release of ROCm in use; None for an unknown one.
    """
    groups = values(failure.patterns, text)
    name = next((groups[kind] for kind in _NAMES if kind in groups), "")
    names = table.hip_names()
    if failure.standing is NameStanding.CHANGED:
        return names.changed(name, here)
    known = names.standing(name, groups.get("owner", ""), here)
    place = named_place(text)
    is_own = known and place and place.file.endswith(known[1].get("header", "-").rpartition("/")[2])
    return None if is_own else known  # the header that declares a name does not lack it because none includes it
