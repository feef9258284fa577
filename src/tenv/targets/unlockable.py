"""Requests that no manifest can hold: an address of a file, and repositories of other programs than git."""

import re
from pathlib import Path

from tenv.debugging.install_line import install_line

__all__ = ["WHY", "names_source", "way_to_install"]

WHY = "a package at an address can't be locked, only one of an index, a git repository or a folder"

_SOURCE = re.compile(
    r"(?:[\w.-]+\s*(?:\[[^\]]*\])?\s*@\s*)?(?:(?:git|hg|svn|bzr)\+\w+:|\w+://|file:|git@|\.{0,2}/|~/|\.{1,2}$)"
)


def names_source(text: str) -> bool:
    """Tell whether a request of pip or uv names an address or a folder, such as ``git+https://…`` or ``./it``."""
    return bool(_SOURCE.match(text.strip()))


def way_to_install(words: str, target: str, site_packages: Path) -> str:
    """Return the hint with the command that installs such a package into an environment, as an unmanaged one.

    Args:
        words: The request, quoted for a shell.
        target: The target.
        site_packages: Where the environment keeps packages.
    """
    return f"`{install_line(target, words, site_packages)}` installs it, and `tenv create` keeps it"
