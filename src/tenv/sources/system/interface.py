"""The interface of system tools: request, tool, reason for rejection, and helpers for searching folders."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.versions import Range
from tenv.host.interface import Missing
from tenv.host.places import Places, read


@dataclass(frozen=True, slots=True)
class Tool:
    """One system tool for an environment."""

    name: str
    """Its key in ``[system]``."""
    path: Path
    """Its folder; for a compiler, the program."""
    version: str
    """Its version, as the tool itself reports it."""
    accepted: str
    """The range in the manifest."""
    found_by: str = ""
    """How tenv found it, as text."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """The programs and folders that a toolchain needs, such as ``nvcc`` or ``g++``, by role."""
    notes: tuple[str, ...] = ()
    """Notes for the user, one sentence each."""
    files: tuple[Path, ...] = ()
    """The files that decide on its output; they are hashed."""
    large: tuple[Path, ...] = ()
    """Libraries that are too large to hash each time; their size and times are compared."""
    watched: tuple[Path, ...] = ()
    """The files among `files` that a shell compares when it activates."""


@dataclass(frozen=True, slots=True)
class Lack:
    """Why tenv found no matching tool."""

    name: str
    """Its key in ``[system]``."""
    accepted: str
    """The range in the manifest."""
    refused: tuple[str, ...]
    """The rejected candidates with the reasons, one sentence each."""
    looked_at: str
    """The searched places, as text."""
    install: str
    """The command that installs it."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """The request for a system tool."""

    name: str
    """The key in ``[system]``."""
    accepted: Range
    """The accepted versions."""
    places: Places
    """The places to search."""
    kept: str = ""
    """The path of the tool that the environment uses already; empty without one."""
    others: Mapping[str, Tool] = field(default_factory=dict)
    """The tools resolved before, by name: a host compiler must fit the toolkit, for example."""
    most: Callable[[str], int | None] = lambda _: None
    """Returns the highest GCC major that a CUDA release accepts; None if unknown."""

    def tool(self, path: Path, version: object, found_by: str, **more: Any) -> Tool:
        """Return a tool that satisfies the request; `more` are further attributes of `Tool`."""
        return Tool(self.name, path, str(version), self.accepted.text, found_by, **more)

    def lack(self, refused: Iterable[str], looked_at: str, install: str) -> Lack:
        """Return that no tool satisfies it, with each reason once."""
        return Lack(self.name, self.accepted.text, tuple(dict.fromkeys(refused)), looked_at, install)


Kind = Callable[[ToolRequest], Tool | Lack]
"""A function that finds one kind of tool."""


def patterns(folder: Path, *names: str) -> list[Path]:
    """Return the files in a folder that match a pattern, sorted per pattern, each file once."""
    found = (path for name in names for path in sorted(folder.glob(name)) if path.is_file())
    return list({os.path.realpath(path): path for path in found}.values())


def first_that_is(*paths: Path) -> Path | None:
    """Return the first path that is a file."""
    return next((path for path in paths if path.is_file()), None)


def named_folders(places: Places, variables: Iterable[str], usual: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield the folders in variables and those that match default patterns, each with its origin."""
    for variable in variables:
        if value := places.environ.get(variable):
            yield variable, Path(value)
    for pattern in usual:
        yield from ((places.named(path), path) for path in sorted(places.root.glob(pattern), reverse=True))


def macros(header: Path, *names: str) -> list[str] | None:
    """Return the numbers that a header defines; None if one is missing."""
    text = read(header)
    if isinstance(text, Missing):
        return None
    found = []
    for name in names:
        match = re.search(rf"^[ \t]*#[ \t]*define[ \t]+{name}[ \t]+(\d+)\b", text, re.MULTILINE)
        if match is None:
            return None
        found.append(match[1])
    return found
