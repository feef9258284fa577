"""Name, version and requirements of a source tree, from the static part of its ``pyproject.toml``.

A lock is made without running code of the tree. The keys are those of
https://packaging.python.org/en/latest/specifications/pyproject-toml/.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tomli

from tenv.core.errors import NoSolutionError
from tenv.core.names import normalize

__all__ = ["ProjectMetadata", "read_project"]

_NEEDED = ("name", "version", "dependencies", "optional-dependencies", "requires-python")
_HINT = (
    "write `name`, `version` and `dependencies` in [project], without `dynamic`; or `tenv run TARGET -- python -m pip "
)
_HINT += "install` installs it, and `tenv create` keeps it"


@dataclass(frozen=True, slots=True)
class ProjectMetadata:
    """The static metadata of a source tree.

    Attributes:
        name: The normalized name.
        version: The version, in the normal form of PEP 440.
        requires: The requirements, those of extras with their marker.
        extras: The names of its extras.
        python: The accepted Pythons, as PEP 440 specifiers; empty for any.
    """

    name: str
    version: str
    requires: tuple[str, ...]
    extras: tuple[str, ...] = ()
    python: str = ""

    def core_metadata(self) -> str:
        """Return the metadata as the ``METADATA`` of a wheel."""
        rows = ["Metadata-Version: 2.1", f"Name: {self.name}", f"Version: {self.version}"]
        rows += [f"Requires-Python: {self.python}"] if self.python else []
        rows += [f"Provides-Extra: {extra}" for extra in self.extras]
        return "\n".join([*rows, *(f"Requires-Dist: {line}" for line in self.requires)]) + "\n"


def read_project(raw: bytes | None, where: str) -> ProjectMetadata:
    """Return the metadata of a source tree.

    Args:
        raw: Its ``pyproject.toml``; None if it has none.
        where: The source tree, for messages.

    Raises:
        NoSolutionError: The file is missing or invalid, or leaves a value to the build backend.
    """
    if raw is None:
        raise NoSolutionError(f"{where}: has no pyproject.toml, so its requirements can't be locked", hint=_HINT)
    try:
        project = tomli.loads(raw.decode("utf-8")).get("project")
    except (ValueError, RecursionError) as error:
        raise NoSolutionError(f"{where}: its pyproject.toml is not TOML: {error}") from error
    if not isinstance(project, dict):
        raise NoSolutionError(f"{where}: its pyproject.toml has no [project], so it can't be locked", hint=_HINT)
    dynamic = project.get("dynamic", [])
    left = [key for key in _NEEDED if isinstance(dynamic, list) and key in dynamic]
    if left:
        why = f"{where}: only its build backend knows {', '.join(left)}, and tenv runs no code to lock"
        raise NoSolutionError(why, hint=_HINT)
    try:
        return _metadata(project)
    except (KeyError, TypeError, AttributeError, ValueError) as error:  # InvalidRequirement and so on are ValueErrors
        raise NoSolutionError(f"{where}: [project] of its pyproject.toml is not valid: {error!s}") from error


def _metadata(project: dict[str, Any]) -> ProjectMetadata:
    from packaging.specifiers import SpecifierSet  # late: 15 ms
    from packaging.version import Version  # late: 11 ms

    name = project["name"]
    if not isinstance(name, str) or not name.isprintable() or not normalize(name):
        raise ValueError(f"`name` is {name!r}")
    extras = project.get("optional-dependencies", {})
    return ProjectMetadata(
        normalize(name),
        str(Version(project["version"])),
        (*_lines(project.get("dependencies", []), ""), *(x for one in extras for x in _lines(extras[one], one))),
        tuple(normalize(extra) for extra in extras),
        str(SpecifierSet(project.get("requires-python", ""))),
    )


def _lines(texts: list[str], extra: str) -> Iterator[str]:
    """Yield requirements as a wheel's metadata has them."""
    from packaging.markers import Marker
    from packaging.requirements import Requirement

    for text in texts:
        requirement = Requirement(text)
        if requirement.url:
            raise ValueError(f"`{text}` names an address: request that package in the manifest itself")
        if extra:
            own = f'extra == "{normalize(extra)}"'
            requirement.marker = Marker(f"({requirement.marker}) and {own}" if requirement.marker else own)
        yield str(requirement)
