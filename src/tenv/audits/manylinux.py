"""The oldest manylinux tag that the symbols of libraries allow.

Sources: PEP 600; the table of symbol versions of auditwheel 6.8 (``manylinux-policy.json``, read on 2026-11-22), which
holds what the distributions behind each tag have.
"""

from collections.abc import Iterable, Mapping

from tenv.core.dataclass import dataclass
from tenv.core.names import platform_tags
from tenv.core.untrusted import whole_number
from tenv.core.versions import Version

__all__ = ["ALLOWED", "TagAnswer", "tag_answer", "tags_of_name"]

_FAMILIES = ("GLIBC", "GLIBCXX", "CXXABI", "GCC")
_POLICIES = (
    ("2.5", "3.4.8", "1.3.1", "4.2.0"),
    ("2.12", "3.4.13", "1.3.3", "4.3.0"),
    ("2.17", "3.4.19", "1.3.7", "4.8.0"),
    ("2.24", "3.4.22", "1.3.10", "4.8.0"),
    ("2.26", "3.4.22", "1.3.10", "4.8.0"),
    ("2.27", "3.4.24", "1.3.11", "7.0.0"),
    ("2.28", "3.4.24", "1.3.11", "7.0.0"),
    ("2.31", "3.4.28", "1.3.12", "7.0.0"),
    ("2.34", "3.4.29", "1.3.13", "7.0.0"),
    ("2.35", "3.4.30", "1.3.13", "12.0.0"),
    ("2.38", "3.4.30", "1.3.13", "12.0.0"),
    ("2.39", "3.4.33", "1.3.14", "14.0.0"),
    ("2.41", "3.4.33", "1.3.15", "14.0.0"),
)
"""The highest version of each family that a tag allows, oldest tag first."""
_LEGACY = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}

ALLOWED = frozenset(
    {
        *("libatomic.so.1", "libgcc_s.so.1", "libstdc++.so.6", "libm.so.6", "libmvec.so.1", "libanl.so.1"),
        *("libdl.so.2", "librt.so.1", "libc.so.6", "libnsl.so.1", "libutil.so.1", "libpthread.so.0"),
        *("libX11.so.6", "libXext.so.6", "libXrender.so.1", "libICE.so.6", "libSM.so.6", "libGL.so.1"),
        *("libgobject-2.0.so.0", "libgthread-2.0.so.0", "libglib-2.0.so.0", "libresolv.so.2"),
        *("libexpat.so.1", "libz.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld-linux.so.2"),
        *("ld64.so.2"),
    }
)
"""The libraries that every tag expects of the system."""


@dataclass(frozen=True, slots=True)
class TagAnswer:
    """The oldest tag.

    Attributes:
        glibc: The glibc of the tag; None where no tag allows the symbols.
        tag: The tag, or ``linux_x86_64`` where none is allowed.
        because: The symbol version that decides it; empty where there is none.
        outside: The libraries that no tag expects of the system and that are not brought along.
    """

    glibc: Version | None
    tag: str
    because: str
    outside: tuple[str, ...]


def tag_answer(needs: Mapping[str, Version], machine: str, outside: Iterable[str]) -> TagAnswer:
    """Return the oldest tag that allows the highest symbol versions of some libraries.

    Args:
        needs: The highest version of each family of symbols (``GLIBC``, ``GLIBCXX`` …).
        machine: The processor.
        outside: The libraries that are needed and not brought along.
    """
    left = tuple(sorted(set(outside) - ALLOWED))
    decided = Version("2.17" if machine != "x86_64" else "2.5")
    because = ""
    for number, family in enumerate(_FAMILIES):
        needed = needs.get(family)
        if needed is None:
            continue
        tag = _first(number, needed)
        if tag is None:
            return TagAnswer(None, f"linux_{machine}", f"{family}_{needed}", left)
        if tag > decided:
            decided, because = tag, f"{family}_{needed}"
    return TagAnswer(decided, f"manylinux_{decided.major}_{decided.minor}_{machine}", because, left)


def _first(number: int, needed: Version) -> Version | None:
    """Return the glibc of the oldest tag that allows a version; of glibc itself there are tags without a row."""
    for row in _POLICIES:
        if needed <= Version(row[number]):
            return max(Version(row[0]), needed) if number == 0 and needed > Version("2.17") else Version(row[0])
    return needed if number == 0 else None


def tags_of_name(name: str) -> tuple[tuple[str, Version], ...]:
    """Return the manylinux tags in the name of a wheel, each with the glibc that it promises."""
    found = []
    for tag in platform_tags(name):
        words = tag.split("_")
        major, minor = map(whole_number, (*words[1:3], "", "")[:2])
        if words[0] == "manylinux" and words[3:] and major is not None and minor is not None:
            found.append((tag, Version(f"{major}.{minor}")))
        elif words[0] in _LEGACY:
            found.append((tag, Version(_LEGACY[words[0]])))
    return tuple(found)
