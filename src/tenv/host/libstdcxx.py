"""Detect the libstdc++ that the loader finds, and its newest symbol versions.

Distributions ship a libstdc++ that is newer than their gcc, so the file is read instead of asking a compiler.
"""

import os
from pathlib import Path

from tenv.host.field import HostField
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.loader import Loader
from tenv.host.report import Libstdcxx
from tenv.host.shared_object import defined_versions, highest

__all__ = ["LIBSTDCXX", "probe"]

_NAME = "libstdc++.so.6"


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
