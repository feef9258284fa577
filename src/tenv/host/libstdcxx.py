"""Detect the libstdc++ that the loader finds, and its newest symbol versions.

Distributions ship a libstdc++ that is newer than their gcc, so the file is read instead of asking a compiler.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from tenv.core.elf import MAGIC, ElfFaultError, open_elf
from tenv.core.files import open_regular
from tenv.core.versions import Version
from tenv.host.field import HostField
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.loader import Loader
from tenv.host.report import Libstdcxx

_NAME = "libstdc++.so.6"
_INPUT = re.compile(r"(/\S+\.so[.\d]*)")


def highest(names: Iterable[str], prefix: str) -> Version | None:
    """Return the highest version among names such as ``GLIBCXX_3.4.30``; None if no name has the prefix."""
    found = (re.fullmatch(rf"{prefix}_(\d+(?:\.\d+)*)", name) for name in names)
    return max((Version(match[1]) for match in found if match), default=None)


def defined_versions(path: Path) -> tuple[str, ...] | Missing:
    """Return the names of the symbol versions that an ELF library defines."""
    try:
        with open_elf(path) as elf:
            names = elf.defined_versions()
    except OSError as error:
        return Missing(f"{path} can't be read: {error.strerror or error}", ReasonKind.UNREADABLE)
    except ElfFaultError as error:
        return Missing(f"{path} can't be read as a library: {error}", ReasonKind.UNREADABLE)
    return names or Missing(f"{path} defines no symbol versions", ReasonKind.UNREADABLE)


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
    if not start.startswith(MAGIC):
        named = _INPUT.search(start.decode("utf-8", "replace"))
        if named is None:
            return ()
        path = Path(named[1])
    found = defined_versions(Path(os.path.realpath(path)))
    return () if isinstance(found, Missing) else found


def probe(loader: Loader) -> Fact[Libstdcxx] | Missing:
    """Return the library that the loader finds, without libraries from a program's own run path.

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
        return Missing(f"{path} defines no GLIBCXX or no CXXABI version", ReasonKind.UNREADABLE)
    return Fact(Libstdcxx(path, glibcxx, cxxabi), library.origin, OriginKind.LOADER)


LIBSTDCXX = HostField(
    label="libstdc++",
    meaning="the libstdc++ that the loader finds, with the highest GLIBCXX and CXXABI that its file defines",
    form="`path`, `glibcxx`, `cxxabi`",
    probe=lambda scan: probe(scan.loader),
    show=lambda library: [f"GLIBCXX_{library.glibcxx}, CXXABI_{library.cxxabi}  {library.path}"],
)
