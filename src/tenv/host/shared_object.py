"""Read the symbol versions that a shared library defines."""

import os
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tenv.core.files import open_regular
from tenv.core.versions import Version
from tenv.host.interface import Missing, ReasonKind

__all__ = ["defined_versions", "highest", "linked_versions"]

_IDENT = 16
_ORDERS = {1: "<", 2: ">"}
_SHT_GNU_VERDEF = 0x6FFFFFFD
_MOST = 1 << 26


class _Fields(NamedTuple):
    """The fields of the file header after its first 16 bytes, and those of a section header, in the terms of struct."""

    header: str
    section: str


_CLASSES = {1: _Fields("HHIIIIIHHHHHH", "IIIIIIIIII"), 2: _Fields("HHIQQQIHHHHHH", "IIQQQQIIQQ")}
_INPUT = re.compile(r"(/\S+\.so[.\d]*)")


def highest(names: Iterable[str], prefix: str) -> Version | None:
    """Return the highest version among names such as ``GLIBCXX_3.4.30``; None if no name has the prefix."""
    found = (re.fullmatch(rf"{prefix}_(\d+(?:\.\d+)*)", name) for name in names)
    return max((Version(match[1]) for match in found if match), default=None)


def defined_versions(path: Path) -> tuple[str, ...] | Missing:
    """Return the names of the symbol versions that an ELF library defines (``.gnu.version_d``).

    The layout of the headers and entries is that of the ELF specification and of glibc's ``elf.h``. pyelftools reads
    them, too; its readers of debug information make it 40 ms slower to import than the section is to read.
    """
    try:
        with open_regular(path) as file:
            names = _version_names(file)
    except OSError as error:
        return Missing(f"{path} can't be read: {error.strerror or error}", ReasonKind.UNREADABLE)
    except (struct.error, ValueError, LookupError, OverflowError) as error:
        return Missing(f"{path} can't be read as a library: {error or 'truncated'}", ReasonKind.UNREADABLE)
    return names or Missing(f"{path} defines no symbol versions", ReasonKind.UNREADABLE)


def _version_names(file: BinaryIO) -> tuple[str, ...]:
    """Return the name of each version definition of an ELF file; raises ValueError or struct.error for other files."""
    ident = file.read(_IDENT)
    if ident[:4] != b"\x7fELF" or ident[4] not in _CLASSES or ident[5] not in _ORDERS:
        raise ValueError("no ELF file")
    order, layout = _ORDERS[ident[5]], _CLASSES[ident[4]]
    header = struct.unpack(order + layout.header, file.read(struct.calcsize(order + layout.header)))
    start, size, count = header[5], header[10], header[11]
    table = _part(file, start, size * count)
    sections = [struct.unpack_from(order + layout.section, table, number * size) for number in range(count)]
    for _, kind, _, _, offset, length, link, entries, *_ in sections:
        if kind == _SHT_GNU_VERDEF:
            text, data = _part(file, *sections[link][4:6]), _part(file, offset, length)
            return tuple(_names(data, text, order, entries))
    return ()


def _part(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    data = file.read(min(length, _MOST))
    if len(data) < length:
        raise ValueError("truncated")
    return data


def _names(data: bytes, text: bytes, order: str, entries: int) -> Iterator[str]:
    """Yield the first name of each entry, which is its own; the others are those of its parents."""
    at = 0
    for _ in range(entries):
        auxiliary, following = struct.unpack_from(order + "II", data, at + 12)
        (name,) = struct.unpack_from(order + "I", data, at + auxiliary)
        yield text[name : text.index(b"\0", name)].decode()
        if not following:  # the last one, whatever the count says
            return
        at += following


def linked_versions(path: Path) -> tuple[str, ...]:
    """Return the symbol versions that linking with a library may require; empty if none are readable.

    Args:
        path: The linker's input: a library, or a linker script that names one, as in Red Hat's toolsets.
    """
    try:
        with open_regular(path) as file:
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
