"""The contents of ``tests/activation/dialects/MODULE.py``: how the shells of a module quote, and where they run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

__all__ = ["AWKWARD", "Dialect"]

AWKWARD = ("a folder", "it's", 'so "quoted"', "$HOME `x` %PATH%", "\\ ;&|<>()", "é")
"""Values that a shell reads as something else, unless they are quoted."""


@dataclass(frozen=True)
class Dialect:
    """The shells of one module.

    Attributes:
        quoted: How each of `AWKWARD` stands in a script.
        hook_line: The line of a start file that defines the function `tenv`; docs/activation.md names it.
        installed_by: The package that `.ci/run` installs for a shell, by its name; the others are part of the system.
        never_run: Why a shell is on no machine of ours, by its name.
    """

    quoted: Mapping[str, str]
    hook_line: Callable[[str], str]
    installed_by: Mapping[str, str] = field(default_factory=dict)
    never_run: Mapping[str, str] = field(default_factory=dict)
