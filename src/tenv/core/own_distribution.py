"""The distribution that this tenv was installed from, and the command that adds an extra to it.

Its name is ``torch-tenv``. On the package index ``tenv`` is another project's name, so no hint may name it there: a
hint repeats the source of this installation, as installers note it (PEP 610, ``direct_url.json``).
"""

import importlib.metadata
import importlib.util
import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tenv.core.untrusted import without_login

DISTRIBUTION = "torch-tenv"

_BEFORE = "tenv"
"""Its name in installations made before it was renamed."""

_START = "tenv.__main__:run"


def own_distribution() -> importlib.metadata.Distribution | None:
    """Return the installed distribution whose command runs this package; None if it is not installed."""
    for name in (DISTRIBUTION, _BEFORE):
        for found in importlib.metadata.distributions(name=name):
            if any(entry.value == _START for entry in found.entry_points):
                return found
    return None


def extra_hint(extra: str, package: str) -> str:
    """Return a hint with the command that installs an extra beside this tenv.

    Args:
        extra: The extra, such as ``7z``.
        package: Its package, for an installation that has no metadata.
    """
    return f"`{shlex.join(_words(extra, package))}` installs it"


def _words(extra: str, package: str) -> list[str]:
    found, here = own_distribution(), Path(sys.prefix)
    brought = _brought(found, extra) or [package]
    direct = _direct_url(found)
    whole, beside = (_source(direct, ""), _source(direct, extra)) if direct else ([DISTRIBUTION], [_named(extra)])
    if (here / "pipx_metadata.json").is_file():
        return ["pipx", "inject", here.name, *brought]
    if found is None or whole is None or beside is None:  # nothing tells where it came from, or that is gone
        return [*_installer(), *brought]
    if (here / "uv-receipt.toml").is_file():
        return ["uv", "tool", "install", *(word for name in brought for word in ("--with", name)), *whole]
    return [*_installer(), *beside]


def _brought(found: importlib.metadata.Distribution | None, extra: str) -> list[str]:
    """Return the requirements that an extra adds."""
    from packaging.requirements import Requirement  # late: 34 ms

    every = [Requirement(text) for text in (found.requires if found else None) or ()]
    return [
        f"{each.name}{each.specifier}"
        for each in every
        if each.marker and each.marker.evaluate({"extra": extra}) and not each.marker.evaluate({"extra": ""})
    ]


def _named(extra: str) -> str:
    return f"{DISTRIBUTION}[{extra}]" if extra else DISTRIBUTION


def _installer() -> list[str]:
    """Return the words that install into the running Python, which need not have pip."""
    if importlib.util.find_spec("pip") is None:
        return [sys.executable, "-P", "-m", "uv", "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install"]


def _direct_url(found: importlib.metadata.Distribution | None) -> Mapping[str, Any] | None:
    """Return the note of the installer about a source that is not an index; None without one."""
    try:
        noted = json.loads((found and found.read_text("direct_url.json")) or "null")
    except (OSError, ValueError, RecursionError):
        return None
    return noted if isinstance(noted, dict) and isinstance(noted.get("url"), str) else None


def _source(direct: Mapping[str, Any], extra: str) -> list[str] | None:
    """Return the words that name a source, with an extra; None if it is a path that is gone."""
    url = without_login(direct["url"])
    folder = _table(direct, "dir_info")
    vcs = _table(direct, "vcs_info")
    below = direct.get("subdirectory")
    parts = urlsplit(url)
    path = Path(unquote(parts.path)) if parts.scheme == "file" else None
    if path is not None and not path.exists():
        return None
    if path is not None and "dir_info" in direct and not below:
        return [*(["-e"] if folder.get("editable") else []), f"{path}[{extra}]" if extra else str(path)]
    if "vcs_info" in direct:
        revision = vcs.get("requested_revision") or vcs.get("commit_id")
        url = f"{vcs.get('vcs', 'git')}+{url}" + (f"@{revision}" if revision else "")
    tail = f"#subdirectory={below}" if below else ""
    return [f"{_named(extra)} @ {url}{tail}"]


def _table(direct: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = direct.get(key)
    return value if isinstance(value, dict) else {}
