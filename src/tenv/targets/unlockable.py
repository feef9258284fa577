"""Packages that a lock can't hold: those of git repositories and folders have no sha256 before they are built.

pip and uv run code of such a package to build it, so `tenv create` with a lock from elsewhere would run foreign code.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from tenv.core.toml_reader import Table

__all__ = ["WHY", "names_source", "refuse_source", "way_to_install"]

WHY = "a package of a git repository or a folder has no sha256 before it is built, so a lock can't hold it"

_SOURCE = re.compile(
    r"(?:[\w.-]+\s*(?:\[[^\]]*\])?\s*@\s*)?(?:(?:git|hg|svn|bzr)\+\w+:|\w+://|file:|git@|\.{0,2}/|~/|\.{1,2}$)"
)
_KEYS = ("git", "path", "editable")


def names_source(text: str) -> bool:
    """Tell whether a request of pip or uv names an address or a folder, such as ``git+https://…`` or ``./it``."""
    return bool(_SOURCE.match(text.strip()))


def way_to_install(words: str, target: str = "TARGET") -> str:
    """Return the hint with the command that installs such a package into an environment, as an unmanaged one."""
    return f"`tenv run {target} -- python -m pip install {words}` installs it, and `tenv create` keeps it"


def refuse_source(table: Table) -> Table:
    """Return the table of a request; raises ManifestError for a key such as ``git`` or ``path``."""
    key = next((key for key in _KEYS if key in table.data), "")
    if key:
        raise table.fail(key, WHY, hint=way_to_install(_words(table.data)))
    return table


def _words(data: Mapping[str, Any]) -> str:
    if "git" in data:
        revision = next((f"@{data[key]}" for key in ("rev", "tag", "branch") if data.get(key)), "")
        return shlex.quote(f"git+{data['git']}{revision}")
    folder = str(data.get("path", "FOLDER"))
    folder = f"./{folder}" if folder.startswith("-") else folder  # else pip takes it for an option
    return ("-e " if data.get("editable") else "") + shlex.quote(folder)
