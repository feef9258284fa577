"""What ``tests/activation/dialects/MODULE.py`` says of a shell module: how its shells are run, and how they quote."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["AWKWARD", "Dialect"]

AWKWARD = ("a folder", "it's", 'so "quoted"', "$HOME `x` %PATH%", "\\ ;&|<>()", "é")
"""Values that a shell reads as something else, unless they are quoted."""


@dataclass(frozen=True)
class Dialect:
    """How the shells of one module are run.

    Attributes:
        words: The words that run a file, by the name of the shell and by its program; at an error, it stops.
        ending: How the name of such a file ends.
        quoted: How each of `AWKWARD` stands in a script.
        append: Returns the line that puts a folder at the end of PATH.
        hook_line: The line of a start file that defines the function `tenv`; docs/activation.md names it.
        installed_by: The package that `.ci/run` installs for a shell, by its name; the others are part of the system.
        never_run: Why a shell is on no machine of ours, by its name.
    """

    words: Callable[[str, str, Path], list[str]]
    ending: str
    quoted: Mapping[str, str]
    append: Callable[[str], str]
    hook_line: Callable[[str], str]
    installed_by: Mapping[str, str] = field(default_factory=dict)
    never_run: Mapping[str, str] = field(default_factory=dict)
