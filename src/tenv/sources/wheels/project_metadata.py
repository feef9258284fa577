"""Name, version and requirements of a source tree, from its ``pyproject.toml`` or from the metadata of its backend.

The keys are those of https://packaging.python.org/en/latest/specifications/pyproject-toml/ and of
https://packaging.python.org/en/latest/specifications/core-metadata/.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import tomli

from tenv.core.dataclass import dataclass
from tenv.core.errors import NoSolutionError
from tenv.core.names import normalize

_NEEDED = ("name", "version", "dependencies", "optional-dependencies", "requires-python")
_OLD_BACKEND = (("setuptools>=40.8.0",), "setuptools.build_meta:__legacy__", ())
"""The build system of PEP 517 and PEP 518 for a tree without a build backend of its own."""


@dataclass(frozen=True, slots=True)
class ProjectMetadata:
    """The metadata of a source tree."""

    name: str
    """The normalized name."""
    version: str
    """The version, in the normal form of PEP 440."""
    requires: tuple[str, ...]
    """The requirements, those of extras with their marker."""
    extras: tuple[str, ...] = ()
    """The names of its extras."""
    python: str = ""
    """The accepted Pythons, as PEP 440 specifiers; empty for any."""
    dynamic: bool = False
    """Whether the build backend computes them, so that they may change with every commit."""

    def core_metadata(self) -> str:
        """Return the metadata as the ``METADATA`` of a wheel."""
        rows = ["Metadata-Version: 2.1", f"Name: {self.name}", f"Version: {self.version}"]
        rows += [f"Requires-Python: {self.python}"] if self.python else []
        rows += [f"Provides-Extra: {extra}" for extra in self.extras]
        return "\n".join([*rows, *(f"Requires-Dist: {line}" for line in self.requires)]) + "\n"


def read_project(raw: bytes | None, where: str, version: str = "") -> ProjectMetadata | None:
    """Return the static metadata of a source tree; None if its build backend computes a value.

    Args:
        raw: Its ``pyproject.toml``; None if it has none.
        where: The source tree, for messages.
        version: Its version, where that is known: then its build backend may compute it.

    Raises:
        NoSolutionError: The file is invalid.
    """
    project = _table(raw, where, "project")
    if project is None:
        return None
    dynamic = project.get("dynamic", [])
    if isinstance(dynamic, list) and any(key in dynamic for key in _NEEDED if not (version and key == "version")):
        return None
    with _valid(f"{where}: [project] of its pyproject.toml"):
        return _metadata({**project, "version": version} if version else project)


def name_of_project(raw: bytes | None, where: str) -> str:
    """Return the normalized name in a ``pyproject.toml``, which is never dynamic; empty if it has none.

    Raises:
        NoSolutionError: The file is invalid.
    """
    project = _table(raw, where, "project") or {}
    with _valid(f"{where}: [project] of its pyproject.toml"):
        return _name(project["name"]) if "name" in project else ""


def build_system(raw: bytes | None, where: str) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """Return the requirements of a tree's build backend, the backend, and the folders of the tree that it lies in.

    Raises:
        NoSolutionError: The file is invalid.
    """
    table = _table(raw, where, "build-system")
    if table is None:
        return _OLD_BACKEND
    with _valid(f"{where}: [build-system] of its pyproject.toml"):
        requires, folders = requirement_lines(table.get("requires", [])), _texts(table.get("backend-path", []))
        backend = table.get("build-backend", _OLD_BACKEND[1])
        if not isinstance(backend, str):
            raise TypeError("`build-backend` is not a text")
        return requires, backend, folders


def parse_core_metadata(raw: bytes, where: str) -> ProjectMetadata:
    """Return the metadata that a build backend has written.

    Args:
        raw: The file ``METADATA``.
        where: The source tree, for messages.

    Raises:
        NoSolutionError: The file is invalid, or a requirement names an address.
    """
    from packaging.metadata import parse_email  # late: only for a tree with a dynamic value

    found, _ = parse_email(raw)
    with _valid(f"{where}: the metadata of its build backend"):
        project = {
            "name": found["name"],
            "version": found["version"],
            "dependencies": found.get("requires_dist", []),
            "requires-python": found.get("requires_python", ""),
        }
        extras = tuple(normalize(extra) for extra in found.get("provides_extra", []))
        return replace(_metadata(project), extras=extras, dynamic=True)


def noted_requirements(raw: bytes | None, where: str) -> tuple[str, ...]:
    """Return the requirements in the ``requires.txt`` that setuptools writes into a source archive.

    The lines below ``[EXTRA:MARKER]`` are those of an extra, or under a marker; both parts may be empty:
    https://setuptools.pypa.io/en/latest/deprecated/python_eggs.html#requires-txt.

    Args:
        raw: The file; None for an archive without one, which requires nothing.
        where: The archive, for messages.

    Raises:
        NoSolutionError: A line is not a requirement.
    """
    found: list[str] = []
    with _valid(f"{where}: its requires.txt"):
        extra = marker = ""
        for line in (raw or b"").decode("utf-8").splitlines():
            text = line.strip()
            if text.startswith("["):
                extra, _, marker = text.strip("[]").partition(":")
            elif text:
                found += _lines([f"{text} ; {marker}" if marker else text], extra)
    return tuple(found)


def _table(raw: bytes | None, where: str, name: str) -> dict[str, Any] | None:
    """Return a table of a ``pyproject.toml``; None without one."""
    if raw is None:
        return None
    try:
        table = tomli.loads(raw.decode("utf-8")).get(name)
    except (ValueError, RecursionError) as error:
        raise NoSolutionError(f"{where}: its pyproject.toml is not TOML: {error}") from error
    if table is not None and not isinstance(table, dict):
        raise NoSolutionError(f"{where}: {name} of its pyproject.toml is not a table")
    return table


@contextlib.contextmanager
def _valid(what: str) -> Iterator[None]:
    """Turn the errors about an invalid value into the error of a failed lock."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:  # InvalidRequirement and so on are ValueErrors
        raise NoSolutionError(f"{what} is not valid: {error!s}") from error


def requirement_lines(values: Any) -> tuple[str, ...]:
    """Return requirements as lines for an installer; nothing else, such as an option, is one.

    Raises:
        ValueError: One is not a requirement of PEP 508.
        TypeError: It is not a list of texts.
    """
    from packaging.requirements import Requirement  # late: 15 ms

    return tuple(str(Requirement(text)) for text in _texts(values))


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("a list of texts was expected")
    return tuple(values)


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name.isprintable() or not normalize(name):
        raise ValueError(f"`name` is {name!r}")
    return normalize(name)


def _metadata(project: dict[str, Any]) -> ProjectMetadata:
    from packaging.specifiers import SpecifierSet  # late: 15 ms
    from packaging.version import Version  # late: 11 ms

    extras = project.get("optional-dependencies", {})
    return ProjectMetadata(
        _name(project["name"]),
        str(Version(project["version"])),
        (*_lines(project.get("dependencies", []), ""), *(x for one in extras for x in _lines(extras[one], one))),
        tuple(normalize(extra) for extra in extras),
        str(SpecifierSet(project.get("requires-python", ""))),
    )


def _lines(texts: list[str], extra: str) -> Iterator[str]:
    """Yield requirements as a wheel's metadata has them."""
    from packaging.markers import Marker
    from packaging.requirements import Requirement

    for text in _texts(texts):
        requirement = Requirement(text)
        if not str(requirement).isprintable():
            raise ValueError(f"`{text!r}` holds unprintable characters")
        if requirement.url:
            raise ValueError(f"`{text}` names an address: request that package in the manifest itself")
        if extra:
            own = f'extra == "{normalize(extra)}"'
            requirement.marker = Marker(f"({requirement.marker}) and {own}" if requirement.marker else own)
        yield str(requirement)
