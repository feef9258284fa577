"""What CMake keeps of a configuration: the variables of ``CMakeCache.txt``."""

import re
from pathlib import Path

from tenv.core.file_content import read_text

__all__ = ["read_cache"]

_ENTRY = re.compile(r"^\"?([^:=\"#/][^:=\"]*)\"?:[A-Z]+=(.*)$")


def read_cache(path: Path) -> dict[str, str]:
    """Return the variables of a cache; empty where there is none."""
    try:
        text = read_text(path, errors="replace")
    except OSError:
        return {}
    return {match[1]: match[2] for line in text.splitlines() if (match := _ENTRY.match(line))}
