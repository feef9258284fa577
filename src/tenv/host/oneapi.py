"""Detect Intel's oneAPI: the folder of its compiler and the version of icpx, for reports alone."""

import re
from pathlib import Path

from tenv.core.versions import Version
from tenv.host.field import HostField, Lane
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.places import Places, is_file, is_folder

_VARIABLE = "CMPLR_ROOT"
_USUAL = "opt/intel/oneapi/compiler/latest"
_VERSION = re.compile(r"(?a)Compiler\s+(\d{4}\.\d{1,2}(?:\.\d{1,3})?)")


def folder(places: Places) -> Fact[str] | Missing:
    """Return the folder of oneAPI's compiler: CMPLR_ROOT, which ``setvars.sh`` sets, else the usual one."""
    if value := places.environ.get(_VARIABLE):
        if not is_folder(value):
            return Missing(f"{_VARIABLE} names {value}, which is no folder", ReasonKind.FAILED)
        return Fact(value, _VARIABLE, OriginKind.VARIABLE)
    if is_folder(places.root / _USUAL):
        return Fact(f"/{_USUAL}", f"/{_USUAL}", OriginKind.SEARCH)
    return Missing(f"{_VARIABLE} is not set, and /{_USUAL} does not exist", ReasonKind.NONE)


def icpx(places: Places) -> Fact[Version] | Missing:
    """Return the version of icpx: of the compiler's folder, else of PATH."""
    found = folder(places)
    root = places.at(found.value) if isinstance(found, Fact) and found.kind is OriginKind.SEARCH else None
    named = Path(found.value) if isinstance(found, Fact) and root is None else root
    own = str(named / "bin" / "icpx") if named and is_file(named / "bin" / "icpx") else None
    program = own or places.find("icpx")
    if program is None:
        return Missing("icpx: not found on PATH", ReasonKind.NONE)
    done = places.run(program, "--version")
    if isinstance(done, Missing):
        return Missing(f"icpx --version: {done.reason}", done.kind)
    match = _VERSION.search(done.stdout)
    if match is None:
        return Missing("icpx --version: its output has no version", ReasonKind.UNREADABLE)
    return Fact(Version(match[1]), "icpx --version", OriginKind.SEARCH)


ONEAPI = HostField(
    label="oneapi",
    meaning="the folder of Intel's oneAPI compiler; no rule reads it",
    form='`"/opt/intel/oneapi/compiler/latest"`',
    probe=lambda scan: folder(scan.places),
)

ICPX = HostField(
    label="icpx",
    meaning="the version of oneAPI's C++ compiler; no rule reads it",
    form='`"2025.3.1"`',
    probe=lambda scan: icpx(scan.places),
    lane=Lane.ALONE,
)
