"""The places of needed libraries, and the faults of these places."""

import os
import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path

from tenv.audits.audited_tree import AuditedKind, AuditedTree
from tenv.audits.library import AuditedFile, audit_finding
from tenv.audits.on_host import ALLOWED
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.dataclass import dataclass
from tenv.core.prefix import MARKER
from tenv.core.size_text import some_of

_MARKS = (MARKER, "pyvenv.cfg", "conda-meta/history")
"""Files that mark an environment: of tenv, of Python's venv, of conda."""

_OF_DRIVER = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvcuvid.so.1", "libnvidia-encode.so.1", "libnvoptix.so.1")
_STUBS = "stubs"
_LARGEST_STUB = 1 << 20
"""NVIDIA's stub of libcuda has 70 kB, a driver's libcuda more than 10 MB."""
_LOADER = "man 8 ld.so: RPATH, RUNPATH, $ORIGIN"
_NAMED = 5


class LinkOrigin(StrEnum):
    """Where a library comes from."""

    INSIDE = "inside"
    ENVIRONMENT = "environment"
    SYSTEM = "system"
    DRIVER = "driver"
    OUTSIDE = "outside"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Environs:
    """The surroundings of an audited path."""

    prefix: Path | None = None
    """The environment; None for none."""
    index: dict[str, str] = field(default_factory=dict)
    """The libraries of the environment by name."""
    find: Callable[[str], str] = lambda _: ""
    """Returns where the system's loader finds a library; an empty string for nowhere."""

    def holds(self, place: str) -> bool:
        """Return whether a file is the environment's, and not of an environment in it."""
        if self.prefix is None or not _is_in(place, self.prefix):
            return False
        prefix = Path(os.path.realpath(self.prefix))
        inner = (folder for folder in Path(_where(place)).parents if prefix in folder.parents)
        return not any(map(is_environment, inner))


@dataclass(frozen=True, slots=True)
class Link:
    """A library that another one needs."""

    name: str
    """Its name."""
    by: str
    """The library that needs it."""
    origin: LinkOrigin
    """Where it comes from."""
    place: str = ""
    """The file; empty where it is not known."""


def is_environment(folder: Path | str) -> bool:
    """Return whether a folder is an environment, of tenv or of another tool."""
    return any(os.path.exists(f"{folder}/{mark}") for mark in _MARKS)  # noqa: PTH110 (unreadable is none)


def environment_index(prefix: Path) -> dict[str, str]:
    """Return the libraries of an environment by name, but none of an environment in it, such as conda's base has."""
    found: dict[str, str] = {}
    for folder, folders, names in os.walk(prefix):
        if folder != str(prefix) and is_environment(folder):
            folders.clear()
            continue
        folders[:] = [name for name in sorted(folders) if name not in (_STUBS, "pkgs", "__pycache__")]
        for name in names:
            if ".so" in name:
                found.setdefault(name, f"{folder}/{name}")
    return found


def links_of(libraries: Sequence[AuditedFile], tree: AuditedTree, around: Environs) -> list[Link]:
    """Return where each library that is needed comes from."""
    sonames = {row.elf.soname for row in libraries if row.elf} - {""}
    found: list[Link] = []
    for library in libraries:
        for name in library.elf.needed if library.elf else ():
            if name in tree.names or name in sonames:
                found.append(Link(name, library.path, LinkOrigin.INSIDE, tree.names.get(name, "")))
            else:
                origin, place = _find(library, name, tree, around)
                found.append(Link(name, library.path, origin, place))
    return found


def _find(library: AuditedFile, name: str, tree: AuditedTree, around: Environs) -> tuple[LinkOrigin, str]:
    for folder in _folders(library, tree):
        place = os.path.join(folder, name)  # noqa: PTH118 (of a wheel, it is no path of this machine)
        if tree.kind is not AuditedKind.WHEEL and os.path.exists(place):  # noqa: PTH110
            own = _is_in(place, tree.path) or around.holds(place)
            return LinkOrigin.ENVIRONMENT if own else _of_host(name) or LinkOrigin.OUTSIDE, place
    if (origin := _of_host(name)) is LinkOrigin.DRIVER:
        return origin, ""
    if name in around.index:
        return LinkOrigin.ENVIRONMENT, around.index[name]
    if origin:
        return origin, ""
    place = around.find(name)
    return (LinkOrigin.OUTSIDE, place) if place else (LinkOrigin.MISSING, "")


def _of_host(name: str) -> LinkOrigin | None:
    """Return whether every host brings a library: with its driver, or as a part of its system."""
    return LinkOrigin.DRIVER if name in _OF_DRIVER else LinkOrigin.SYSTEM if name in ALLOWED else None


def _folders(library: AuditedFile, tree: AuditedTree) -> list[str]:
    """Return the folders of a library's run path, with its own folder for ``$ORIGIN``."""
    if library.elf is None:
        return []
    base = (
        ""
        if tree.kind is AuditedKind.WHEEL
        else str(tree.path if tree.kind is AuditedKind.FOLDER else tree.path.parent)
    )
    origin = posixpath.dirname(posixpath.join(base, library.path))
    rows = library.elf.runpath or library.elf.rpath
    return [row.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for row in rows]


def _is_in(place: str, folder: Path) -> bool:
    base = os.path.realpath(folder)
    return any(name == base or name.startswith(base + os.sep) for name in (os.path.realpath(place), _where(place)))


def _where(place: str) -> str:
    """Return where a file stands, whatever it links to: installers link files to a store."""
    folder, name = os.path.split(place)
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118 (a text)


def link_findings(
    libraries: Sequence[AuditedFile], links: Sequence[Link], tree: AuditedTree, around: Environs
) -> list[Finding]:
    """Return the faults in the places of libraries."""
    return [
        *_missing(links, tree, around),
        *_outside(links),
        *_stubs(libraries, tree),
        *_foreign_folders(libraries, tree, around),
    ]


def _users(links: Sequence[Link], origin: LinkOrigin) -> dict[str, list[Link]]:
    found: dict[str, list[Link]] = {}
    for link in links:
        if link.origin is origin:
            found.setdefault(link.name, []).append(link)
    return found


def _needed_by(rows: Sequence[Link]) -> str:
    return f"needed by {some_of(list(dict.fromkeys(row.by for row in rows)), _NAMED)}"


def _missing(links: Sequence[Link], tree: AuditedTree, around: Environs) -> Iterator[Finding]:
    """Yield the libraries that are found nowhere; a wheel may find them in another package, which none names here."""
    found = _users(links, LinkOrigin.MISSING)
    fix = "add the package that brings it to the target; a plugin that is never loaded can do without"
    fix = fix if around.prefix else "`tenv audit --target TARGET` looks in an environment as well"
    if found and tree.kind is AuditedKind.WHEEL and around.prefix is None:
        what = "not in the wheel, and no environment was named in which another package may bring"
        yield audit_finding(
            "TE002",
            Severity.WARNING,
            ", ".join(sorted(found)),
            f"is {what} it" if len(found) == 1 else f"are {what} them",
            _needed_by([row for rows in found.values() for row in rows]),
            _LOADER,
            fix,
        )
        return
    for name, rows in found.items():
        message = "is found neither by a run path nor in the environment nor on this machine"
        yield audit_finding("TE002", Severity.ERROR, name, message, _needed_by(rows), _LOADER, fix)


def _outside(links: Sequence[Link]) -> Iterator[Finding]:
    for name, rows in _users(links, LinkOrigin.OUTSIDE).items():
        yield audit_finding(
            "TE003",
            Severity.WARNING,
            name,
            "comes from outside the environment, so another machine may have another one or none",
            f"{rows[0].place}, {_needed_by(rows)}",
            _LOADER,
            "add its package to the target and build again, or require it on every machine",
        )


def _stubs(libraries: Sequence[AuditedFile], tree: AuditedTree) -> Iterator[Finding]:
    fix = "link with `-lcuda` and without a run path to the stub: the driver brings libcuda.so.1"
    source = "CUDA Installation Guide: the stub libraries are for linking alone; cudaErrorStubLibrary (34)"
    for library in libraries:
        for folder in _folders(library, tree):
            driver = Path(folder) / _OF_DRIVER[0]
            stub = _STUBS in Path(folder).parts
            if not stub and tree.kind is not AuditedKind.WHEEL and driver.is_file():
                stub = driver.stat().st_size < _LARGEST_STUB
            if stub:
                yield audit_finding(
                    "TE004",
                    Severity.ERROR,
                    library.path,
                    "has a run path to a stub of the CUDA driver, which is loaded in place of the driver",
                    f"run path {folder}",
                    source,
                    fix,
                )
    carried = [name for name in tree.files if posixpath.basename(name).startswith("libcuda.so")]
    for name in carried:
        if not {_STUBS, "compat"} & set(name.split("/")):
            yield audit_finding(
                "TE004",
                Severity.ERROR,
                name,
                "is a library of the CUDA driver, and is loaded in place of the one of the machine",
                f"{name} in {tree.path.name}",
                source,
                "leave it out: `auditwheel repair --exclude libcuda.so.1`",
            )


def _foreign_folders(libraries: Sequence[AuditedFile], tree: AuditedTree, around: Environs) -> Iterator[Finding]:
    """Yield the absolute folders of run paths that other machines do not have."""
    found: dict[str, list[str]] = {}
    for library in libraries:
        for folder in (library.elf.runpath or library.elf.rpath) if library.elf else ():
            own = around.holds(folder)
            if folder.startswith("/") and (tree.kind is AuditedKind.WHEEL or not (own or os.path.isdir(folder))):  # noqa: PTH112
                found.setdefault(folder, []).append(library.path)
    if found:
        paths = list(dict.fromkeys(path for rows in found.values() for path in rows))
        yield audit_finding(
            "TE011",
            Severity.WARNING,
            ", ".join(found),
            "is the machine's that built it: elsewhere it is missing, or holds something else"
            if tree.kind is AuditedKind.WHEEL
            else "is in a run path, and there is no such folder",
            f"run path of {some_of(paths, _NAMED)}",
            _LOADER,
            "build with run paths below `$ORIGIN` (CMAKE_INSTALL_RPATH), or `patchelf --set-rpath`",
        )
