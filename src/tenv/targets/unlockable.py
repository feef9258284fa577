"""Requests that no manifest can hold: an address of a file, and repositories of other programs than git."""

import re

__all__ = ["WHY", "names_source", "way_to_install"]

WHY = "a package at an address can't be locked, only one of an index, a git repository or a folder"

_SOURCE = re.compile(
    r"(?:[\w.-]+\s*(?:\[[^\]]*\])?\s*@\s*)?(?:(?:git|hg|svn|bzr)\+\w+:|\w+://|file:|git@|\.{0,2}/|~/|\.{1,2}$)"
)


def names_source(text: str) -> bool:
    """Tell whether a request of pip or uv names an address or a folder, such as ``git+https://…`` or ``./it``."""
    return bool(_SOURCE.match(text.strip()))


def way_to_install(words: str, target: str = "TARGET") -> str:
    """Return the hint with the command that installs such a package into an environment, as an unmanaged one."""
    return f"`tenv run {target} -- python -m pip install {words}` installs it, and `tenv create` keeps it"
