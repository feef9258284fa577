"""The installation of tenv: versions, folders, caches, settings, the index."""

import platform
import re
import sys
from importlib import metadata
from typing import Any

from tenv import __version__
from tenv.core.dataclass import dataclass
from tenv.core.errors import TenvError
from tenv.core.file_stamps import stamps_folder
from tenv.core.other_programs import other_programs
from tenv.core.truth_words import is_true
from tenv.core.user_folders import user_home
from tenv.host.machine import current_platform
from tenv.project.context import Context
from tenv.sources.interface import sources
from tenv.targets.search import Origin, settings_folder
from tenv.verbs.clean import NOTES
from tenv.verbs.settings import Setting, settings_in_use

__all__ = ["About", "describe_installation"]

_LIBRARIES = ("py-rattler", "uv")


@dataclass(frozen=True, slots=True)
class About:
    """The installation of tenv.

    Attributes:
        commit: The commit that it was installed from; None if it is not known.
        platform: The platform of this host.
        versions: The versions of tenv and its dependencies, by name.
        folders: The folders by name; None for a missing one.
        caches: The folders of the caches, by name.
        settings: The settings with their origins.
        index: The indexes of wheels in the order in which they are asked.
        others: Other programs called tenv on PATH, in the order of PATH.
    """

    commit: str | None
    platform: str
    versions: dict[str, str]
    folders: dict[str, str | None]
    caches: dict[str, str]
    settings: tuple[Setting, ...]
    index: str
    others: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the description as JSON values."""
        return {
            "version": __version__,
            "commit": self.commit,
            "platform": self.platform,
            "versions": self.versions,
            "folders": self.folders,
            "caches": self.caches,
            "settings": {setting.name: setting.to_json() for setting in self.settings},
            "index": self.index,
            "others": list(self.others),
        }


def describe_installation(context: Context, commit: str) -> About:
    """Return the description of the installation, without network access.

    Args:
        context: The context of the verb.
        commit: The commit that tenv was installed from; empty if it is not known.
    """
    places = context.places
    built_in = next(place.folder for place in places.places if place.origin is Origin.BUILT_IN)
    versions = {"python": platform.python_version()} | {name: _version(name) for name in _LIBRARIES}
    folders = {
        "program": sys.argv[0],
        "project": str(places.project) if places.project else None,
        "environments": str(places.environments()),
        "settings": str(settings_folder()),
        "data": str(places.data),
        "Pythons (uv)": _pythons(context),
        "built-in": str(built_in),
    }
    return About(
        commit or None, current_platform(), versions, folders, _caches(context),
        tuple(settings_in_use(context)), _index(context), other_programs(context.environ),
    )  # fmt: skip


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"


def _caches(context: Context) -> dict[str, str]:
    found: dict[str, str] = {}
    for source in sources():
        try:
            found |= {cache.name: str(cache.path) for cache in source.caches(context) if not cache.leftover}
        except TenvError as error:
            found[source.section.kind] = error.message
    return found | {NOTES: str(stamps_folder())}


def _pythons(context: Context) -> str | None:
    """Return the folder of the Pythons that uv downloaded for tenv or for anyone; None for a missing one."""
    try:
        folder = context.uv().folder("python")
    except TenvError:
        return None
    return str(folder) if folder.is_dir() else None


def _index(context: Context) -> str:
    """Return the indexes of wheels in the order in which uv asks them, without logins; in words where none is named.

    uv asks the named indexes before the default one (its documentation, "Package indexes").
    """
    from tenv.sources.wheels.index_settings import uv_settings

    found = uv_settings(context.environ, user_home())
    names, tables = found.environment, found.configuration.get("index", [])
    tables = [table for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []
    first = [word for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL") for word in names.get(name, "").split()]
    first += [str(table.get("url", "")) for table in tables if not table.get("default")]
    first += _listed(found.configuration.get("extra-index-url"))
    last = [names.get("UV_DEFAULT_INDEX"), names.get("UV_INDEX_URL")]
    last += [str(table.get("url", "")) for table in tables if table.get("default")]
    last += _listed(found.configuration.get("index-url"))
    links = [*re.split(r"[\s,]+", names.get("UV_FIND_LINKS", "")), *_listed(found.configuration.get("find-links"))]
    if is_true(names.get("UV_NO_INDEX", "")) or found.configuration.get("no-index") is True:
        first, default = [], "none"
    else:
        default = next(filter(None, last), "the default of uv")
    rows = [*first, default, *(f"files of {link}" for link in links if link)]
    return ", ".join(_bare(row) for row in dict.fromkeys(filter(None, rows)))


def _listed(value: object) -> list[str]:
    return [value] if isinstance(value, str) else [str(one) for one in value] if isinstance(value, list) else []


def _bare(text: str) -> str:
    """Return the URL of an index without its name and its login."""
    return re.sub(r"//[^/@]*@", "//", re.sub(r"^[\w.-]+=(?=\w+://|/)", "", text))
