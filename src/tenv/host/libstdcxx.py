"""The libstdc++ that the loader takes, and the newest interfaces in it.

Distributions ship a libstdc++ that is newer than their gcc, so the file is read and no compiler is asked.
"""

import os
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from tenv.host.interface import Fact, Missing
from tenv.host.loader import Loader
from tenv.host.report import Libstdcxx
from tenv.versions import Version

__all__ = ["defined_versions", "highest", "probe"]

_NAME = "libstdc++.so.6"

_ELF64, _LITTLE, _VERDEF = b"\x7fELF\x02", 1, 0x6FFFFFFD
# Elf64_Ehdr, Elf64_Shdr and Elf64_Verdef.
_HEADER, _SECTION, _ENTRY = struct.Struct("<16sHHIQQQIHHHHHH"), "IIQQQQIIQQ", "HHHHIII"


def highest(names: Iterable[str], prefix: str) -> Version | None:
    """Return the highest version among names such as ``GLIBCXX_3.4.30``, None when there is none of that prefix."""
    found = (re.fullmatch(rf"{prefix}_(\d+(?:\.\d+)*)", name) for name in names)
    return max((Version(match[1]) for match in found if match), default=None)


def defined_versions(path: Path) -> tuple[str, ...] | Missing:
    """Return the names of the symbol versions that a 64-bit ELF library defines (``.gnu.version_d``)."""
    try:
        with path.open("rb") as file:
            return tuple(_read_versions(file)) or Missing(f"{path} defines no symbol versions")
    except OSError as error:
        return Missing(f"{path} can't be read: {error.strerror or error}")
    except (struct.error, ValueError, LookupError, OverflowError) as error:
        return Missing(f"{path} can't be read as a library: {error}")


def _read_versions(file: IO[bytes]) -> Iterator[str]:
    """Yield the names, as the System V ABI and the LSB lay them out; a library for all of ELF takes 50 ms to load."""
    head = file.read(_HEADER.size)
    if head[:5] != _ELF64:
        raise ValueError("it is no 64-bit ELF file")
    order = "<" if head[5] == _LITTLE else ">"
    fields = struct.unpack(order + _HEADER.format[1:], head)
    start, size, count = fields[6], fields[11], fields[12]
    file.seek(start)
    table = file.read(size * count)
    sections = [struct.unpack_from(order + _SECTION, table, size * number) for number in range(count)]
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind != _VERDEF:
            continue
        file.seek(sections[link][4])
        names = file.read(sections[link][5])
        file.seek(offset)
        data, at, step = file.read(length), 0, 1
        while step:  # the first name of each entry is its own, the others are those that it builds on
            _, _, _, _, _, first, step = struct.unpack_from(order + _ENTRY, data, at)
            name = struct.unpack_from(order + "I", data, at + first)[0]
            yield names[name : names.index(b"\0", name)].decode("ascii")
            at += step


def probe(loader: Loader) -> Fact[Libstdcxx] | Missing:
    """Return the library that the loader takes, without one that a program brings along by its run path.

    Args:
        loader: The loader that finds it.
    """
    library = loader.find(_NAME)
    if isinstance(library, Missing):
        return library
    path = os.path.realpath(library.path)
    names = defined_versions(Path(path))
    if isinstance(names, Missing):
        return names
    glibcxx, cxxabi = highest(names, "GLIBCXX"), highest(names, "CXXABI")
    if glibcxx is None or cxxabi is None:
        return Missing(f"{path} defines no GLIBCXX or no CXXABI version")
    return Fact(Libstdcxx(path, glibcxx, cxxabi), library.origin)
