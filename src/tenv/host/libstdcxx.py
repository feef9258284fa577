"""The libstdc++ that the loader takes, and the newest interfaces in it.

Distributions ship a libstdc++ that is newer than their gcc, so the file is read and no compiler is asked.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from tenv.core.json_reader import Values
from tenv.core.versions import Version
from tenv.host.field import HostField
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.loader import Loader
from tenv.host.report import Libstdcxx

__all__ = ["LIBSTDCXX", "defined_versions", "highest", "probe"]

_NAME = "libstdc++.so.6"


def highest(names: Iterable[str], prefix: str) -> Version | None:
    """Return the highest version among names such as ``GLIBCXX_3.4.30``, None when there is none of that prefix."""
    found = (re.fullmatch(rf"{prefix}_(\d+(?:\.\d+)*)", name) for name in names)
    return max((Version(match[1]) for match in found if match), default=None)


def defined_versions(path: Path) -> tuple[str, ...] | Missing:
    """Return the names of the symbol versions that an ELF library defines (``.gnu.version_d``)."""
    from elftools.common.exceptions import ELFError  # noqa: PLC0415 (late: 40 ms)
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415
    from elftools.elf.gnuversions import GNUVerDefSection  # noqa: PLC0415

    try:
        with path.open("rb") as file:
            section = ELFFile(file).get_section_by_name(".gnu.version_d")
            if not isinstance(section, GNUVerDefSection):
                return Missing(f"{path} defines no symbol versions", ReasonKind.UNREADABLE)
            # The first name of each entry is its own, the others are those that it builds on.
            return tuple(next(names).name for _, names in section.iter_versions())
    except OSError as error:
        return Missing(f"{path} can't be read: {error.strerror or error}", ReasonKind.UNREADABLE)
    except (ELFError, StopIteration, ValueError, LookupError) as error:
        return Missing(f"{path} can't be read as a library: {error or 'cut off'}", ReasonKind.UNREADABLE)


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
        return Missing(f"{path} defines no GLIBCXX or no CXXABI version", ReasonKind.UNREADABLE)
    return Fact(Libstdcxx(path, glibcxx, cxxabi), library.origin, OriginKind.LOADER)


def _read(values: Values, key: str) -> Libstdcxx:
    found = values.object(key)
    return Libstdcxx(path=found.text("path"), glibcxx=found.version("glibcxx"), cxxabi=found.version("cxxabi"))


LIBSTDCXX = HostField(
    label="libstdc++",
    meaning="the libstdc++ that the loader takes, with the highest GLIBCXX and CXXABI that its file defines",
    form="`path`, `glibcxx`, `cxxabi`",
    probe=lambda scan: probe(scan.loader),
    read=_read,
    show=lambda library: [f"GLIBCXX_{library.glibcxx}, CXXABI_{library.cxxabi}  {library.path}"],
)
