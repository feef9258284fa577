"""What every kind of system tool shares: what is asked of it, and what it answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tenv.core.versions import Range
from tenv.host.places import Places

__all__ = ["Kind", "Lack", "Tool", "ToolRequest"]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of the machine, taken into an environment.

    Attributes:
        name: Its key in ``[system]``.
        path: Its folder; for a compiler, the program.
        version: Its version, as the tool itself tells it.
        accepted: The range that the manifest asks for.
        found_by: What led to it, in words.
        roles: Programs and folders that a toolchain needs of it, such as ``nvcc`` or ``g++``, by role.
        notes: What a person should know of it, in sentences.
        files: The files whose content decides what it builds; each is digested.
        large: Libraries too large to be digested each time; their size and times are compared.
        watched: Those of `files` that even a shell looks at when it activates.
    """

    name: str
    path: Path
    version: str
    accepted: str
    found_by: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    large: tuple[Path, ...] = ()
    watched: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Lack:
    """Why a tool could not be taken.

    Attributes:
        name: Its key in ``[system]``.
        accepted: The range that the manifest asks for.
        refused: What was found and why it won't do, in sentences.
        looked_at: Where it was looked for.
        install: The command that installs it.
    """

    name: str
    accepted: str
    refused: tuple[str, ...]
    looked_at: str
    install: str


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """What is asked of a kind.

    Attributes:
        name: The key in ``[system]``.
        accepted: The versions that will do.
        places: Where to look.
        kept: The path of the one that the environment was made with, or an empty string.
        others: What has been taken already, by name: a host compiler must suit the toolkit, say.
        most: The highest major of GCC that a release of CUDA accepts, None where that is not known.
    """

    name: str
    accepted: Range
    places: Places
    kept: str = ""
    others: Mapping[str, Tool] = field(default_factory=dict)
    most: Callable[[str], int | None] = lambda _: None


Kind = Callable[[ToolRequest], Tool | Lack]
"""Finds one kind of tool."""
