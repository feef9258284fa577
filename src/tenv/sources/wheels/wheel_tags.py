"""What the tags of wheels say of platforms and glibc."""

import re
from collections.abc import Iterable, Sequence

from tenv.core.names import WheelFile
from tenv.core.versions import Version
from tenv.core.wheel_platforms import MACHINES

__all__ = ["glibc_of", "platforms_of", "spoken"]

_OLD_NAMES = {"manylinux2014": "2.17", "manylinux2010": "2.12", "manylinux1": "2.5"}
_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_|(manylinux(?:1|2010|2014))_")


def glibc_of(file: str) -> Version | None:
    """Return the oldest glibc that a wheel runs on, by its name; None for a wheel without such a tag."""
    found = [
        Version(_OLD_NAMES[match[3]] if match[3] else f"{match[1]}.{match[2]}") for match in _MANYLINUX.finditer(file)
    ]
    return min(found, default=None)


def platforms_of(files: Iterable[WheelFile]) -> list[str]:
    """Return the platforms that wheels are for: those that tenv has, ``any`` and ``macOS``."""
    found: set[str] = set()
    for file in files:
        for tag in file.tags.rsplit("-", 1)[-1].split("."):
            if tag == "any" or tag.startswith("macosx"):
                found.add("any" if tag == "any" else "macOS")
            elif "manylinux" in tag or tag.startswith(("linux_", "win_")):
                system = "win_" if tag.startswith("win_") else "linux"
                found |= {p for p, machine in MACHINES.items() if tag.endswith(f"_{machine}") and p[:3] == system[:3]}
    order = ["any", *MACHINES, "macOS"]
    return sorted(found, key=order.index)


def spoken(words: Sequence[str]) -> str:
    """Return a list in words; of Python minors in a row the first and the last."""
    minors = [int(word[2:]) for word in words if re.fullmatch(r"3\.\d+", word)]
    if words[2:] and len(minors) == len(words) and minors == list(range(minors[0], minors[-1] + 1)):
        return f"{words[0]} to {words[-1]}"
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)
