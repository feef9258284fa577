"""Read the symbol versions that a shared library defines."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from tenv.core.versions import Version
from tenv.host.interface import Missing, ReasonKind

__all__ = ["defined_versions", "highest", "linked_versions"]

_INPUT = re.compile(r"(/\S+\.so[.\d]*)")


def highest(names: Iterable[str], prefix: str) -> Version | None:
    """Return the highest version among names such as ``GLIBCXX_3.4.30``; None if no name has the prefix."""
    found = (re.fullmatch(rf"{prefix}_(\d+(?:\.\d+)*)", name) for name in names)
    return max((Version(match[1]) for match in found if match), default=None)


def defined_versions(path: Path) -> tuple[str, ...] | Missing:
    """Return the names of the symbol versions that an ELF library defines (``.gnu.version_d``)."""
    from elftools.common.exceptions import ELFError  # late: 40 ms
    from elftools.elf.elffile import ELFFile
    from elftools.elf.gnuversions import GNUVerDefSection

    try:
        with path.open("rb") as file:
            section = ELFFile(file).get_section_by_name(".gnu.version_d")
            if not isinstance(section, GNUVerDefSection):
                return Missing(f"{path} defines no symbol versions", ReasonKind.UNREADABLE)
            # The first name of each entry is its own, the others are its parents.
            return tuple(next(names).name for _, names in section.iter_versions())
    except OSError as error:
        return Missing(f"{path} can't be read: {error.strerror or error}", ReasonKind.UNREADABLE)
    except (ELFError, StopIteration, ValueError, LookupError) as error:
        return Missing(f"{path} can't be read as a library: {error or 'truncated'}", ReasonKind.UNREADABLE)


def linked_versions(path: Path) -> tuple[str, ...]:
    """Return the symbol versions that linking with a library may require; empty if none are readable.

    Args:
        path: The linker's input: a library, or a linker script that names one, as in Red Hat's toolsets.
    """
    try:
        with path.open("rb") as file:
            start = file.read(1024)
    except OSError:
        return ()
    if not start.startswith(b"\x7fELF"):
        named = _INPUT.search(start.decode("utf-8", "replace"))
        if named is None:
            return ()
        path = Path(named[1])
    found = defined_versions(Path(os.path.realpath(path)))
    return () if isinstance(found, Missing) else found
