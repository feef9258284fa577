"""Settings with their origins, written with their comments kept; the installation of tenv."""

import os
import platform
import re
import sys
import tempfile
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from tenv import __version__
from tenv.core.dataclass import dataclass
from tenv.core.errors import TenvError, UsageError
from tenv.core.file_stamps import stamps_folder
from tenv.core.files import make_private, write_atomic
from tenv.core.names import channel_url
from tenv.core.other_programs import other_programs
from tenv.core.size_text import format_bytes
from tenv.core.toml_reader import nearest, read_toml
from tenv.core.truth_words import is_set, is_true
from tenv.core.untrusted import without_login
from tenv.host.machine import current_platform
from tenv.project.context import Context
from tenv.sources.interface import sources
from tenv.targets.config import (
    PROJECT_FILE,
    SAFE_FOLDERS,
    SYSTEM_FILE,
    Settings,
    link_mode,
    read_project_settings,
    read_settings,
    system_safe_folders,
    unpack_limit,
)
from tenv.targets.search import Origin, settings_folder
from tenv.verbs.remove import NOTES

WITHHELD = "distribute-token"
"""The setting whose value no output has."""

HIDDEN = "(hidden)"
"""What stands in place of the token in every output."""

_KEYS = {
    "default": (PROJECT_FILE,),
    "sync": (PROJECT_FILE, "config.toml"),
    "mirrors": ("config.toml",),
    "safe-folders": ("config.toml",),
    "link-mode": ("config.toml",),
    "unpack-limit": ("config.toml",),
    "cache-storage": ("config.toml",),
    "distribute": ("config.toml",),
    WITHHELD: ("config.toml",),
}
_VARIABLES = ("TENV_LOCKED", "TENV_FROZEN", "TENV_OFFLINE")

_LIBRARIES = ("py-rattler", "uv")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting in use."""

    name: str
    """Its key, or the variable."""
    value: Any
    """Its value."""
    origin: str
    """Its file, ``environment``, or ``default``."""

    def to_json(self) -> dict[str, Any]:
        """Return the setting as JSON values."""
        return {"value": self.value, "origin": self.origin}


def settings_in_use(context: Context) -> list[Setting]:
    """Return every setting with its value and origin."""
    project, user = context.project_settings(), context.settings()
    own = settings_folder() / "config.toml"
    theirs = str(context.places.project / PROJECT_FILE) if context.places.project else ""
    given = read_toml(own, UsageError).data if own.is_file() else {}
    sync = project.sync if project.sync is not None else user.sync
    sync_origin = theirs if project.sync is not None else str(own) if "sync" in given else "default"
    found = [
        Setting("default", project.default or None, theirs if project.default else "default"),
        Setting("sync", sync, sync_origin),
        Setting(
            "mirrors",
            {start: list(urls) for start, urls in user.mirrors.items()},
            str(own) if "mirrors" in given else "default",
        ),
    ]
    found.append(_safe_folders(user, own, context))
    mode, mode_origin = link_mode(settings_folder(), context.environ)
    found.append(Setting("link-mode", mode.value, mode_origin))
    limit, limit_origin = unpack_limit(settings_folder(), context.environ)
    found.append(Setting("unpack-limit", limit and format_bytes(limit), limit_origin))
    storage = user.cache_storage
    found.append(Setting("cache-storage", storage or None, str(own) if storage else "default"))
    hidden = HIDDEN if user.distribute_token else None
    for name, value in (("distribute", user.distribute or None), (WITHHELD, hidden)):
        found.append(Setting(name, value, str(own) if value else "default"))
    return found + [
        Setting(name, value, "environment" if name in context.environ else "default")
        for name in _VARIABLES
        for value in (is_set(name),)
    ]


def _safe_folders(user: Settings, own: Path, context: Context) -> Setting:
    """Return the folders that are trusted, whoever made their content, with each of their origins."""
    of_root: tuple[Path, ...] = ()
    with suppress(UsageError):  # a file that others can write, which the command that needs it names
        of_root = system_safe_folders()
    named = [name for name in context.environ.get(SAFE_FOLDERS, "").split(os.pathsep) if name]
    rows = {str(own): user.safe_folders, "environment": named, str(SYSTEM_FILE): of_root}
    folders = [str(folder) for found in rows.values() for folder in found]
    origins = [origin for origin, found in rows.items() if found]
    return Setting("safe-folders", folders or None, ", ".join(origins) or "default")


def default_of(context: Context) -> tuple[str, str]:
    """Return the default target and its origin."""
    name = context.default_target()
    if context.project_settings().default:
        return name, f"{context.places.project}/{PROJECT_FILE}"
    return name, "the only target of the project" if context.places.project_targets() else "the only environment"


def set_default(context: Context, target: str) -> Path:
    """Set the default target of the project; return the written file.

    Raises:
        UsageError: There is no project.
        UnknownTargetError: The target does not exist.
    """
    if context.places.project is None:
        hint = "`tenv init` makes this folder a project"
        raise UsageError("a default target needs a project, and there is none", hint=hint)
    return change_setting(context, "default", target)


def change_setting(context: Context, key: str, value: str | None, *, project: bool = False) -> Path:
    """Write or remove a setting; return the file.

    Args:
        context: The context of the verb.
        key: The setting; ``mirrors.URL`` for a mirror.
        value: Its value, several mirrors or folders separated by commas. None removes it.
        project: Whether to write the project's file in place of the user's.

    Raises:
        UsageError: The setting does not exist, its value is not valid, or there is no such mirror; the file is then
            unchanged.
        UnknownTargetError: The default is to be a target that does not exist.
    """
    import tomlkit  # late: 22 ms

    name, _, start = key.partition(".")
    if name not in _KEYS or (name == "mirrors") != bool(start):
        raise _unknown_setting(key, value)
    if value is not None and not (value and value.isprintable()):
        fault = "has unprintable characters" if value else "is empty"
        raise UsageError(f"{key}: the value {fault}", hint=f"`tenv config {key} --unset` removes the setting")
    file = _file(context, name, project=project)
    if name == "default" and value is not None:
        context.places.find(value)
    reader = read_project_settings if file.name == PROJECT_FILE else read_settings
    before = read_toml(file, UsageError).source if file.is_file() else ""
    document = tomlkit.parse(before.replace("\r\n", "\n"))
    table: Any = document.setdefault("mirrors", tomlkit.table()) if start else document
    if value is None:
        if start and start not in table:
            hint = nearest(key, [f"mirrors.{url}" for url in table])
            raise UsageError(f"{file} has no setting `{without_login(key)}`", hint=without_login(hint))
        table.pop(start or name, None)
        if start and not table:
            document.pop("mirrors")
    else:
        table[start or name] = _value(name, value)
    with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
        write_atomic(Path(folder, file.name), document.as_string())
        try:
            reader(Path(folder))
        except UsageError as error:
            raise UsageError(error.message.replace(folder, str(file.parent)), hint=error.hint) from None
    if name == WITHHELD and value is not None:
        make_private(file)
    write_atomic(file, document.as_string())
    if name in ("distribute", WITHHELD):
        from tenv.builds.distribution import forget_token  # late: few settings are those of a scheduler

        forget_token(context.environ)
    return file


def _unknown_setting(key: str, value: str | None) -> UsageError:
    """Return the error for a setting that does not exist, with the nearest one as it is typed."""
    name, _, start = key.partition(".")
    if name == "mirrors":
        line = f"`tenv config mirrors.{channel_url('conda-forge')} {value or 'MIRROR'}` sets that of conda-forge"
        return UsageError("`mirrors` needs the URL that is replaced", hint=line)
    known = [f"{one}.{start or 'URL'}" if one == "mirrors" else one for one in _KEYS]
    close = nearest(key, known) or nearest(name, _KEYS)
    return UsageError(f"unknown setting `{key}`", hint=close or f"known settings: {', '.join(known)}")


def _file(context: Context, name: str, *, project: bool) -> Path:
    if project and PROJECT_FILE not in _KEYS[name]:
        hint = "the same command without `--project` writes it there"
        raise UsageError(f"{name} stands in your config.toml alone, not in {PROJECT_FILE} of a project", hint=hint)
    if PROJECT_FILE not in _KEYS[name] or (not project and len(_KEYS[name]) > 1):
        return settings_folder() / "config.toml"
    if context.places.project is None:
        context.places.require_trust()
        raise UsageError("there is no project", hint="`tenv init` makes this folder a project")
    return context.places.project / PROJECT_FILE


def _value(name: str, text: str) -> Any:
    if name in ("mirrors", "safe-folders"):
        return [part.strip() for part in text.split(",")]
    if name == "sync":
        if text not in ("true", "false"):
            raise UsageError(f"sync: expected true or false, got `{text}`", hint="`tenv config sync true`")
        return text == "true"
    return text


@dataclass(frozen=True, slots=True)
class About:
    """The installation of tenv."""

    commit: str | None
    """The commit that it was installed from; None if it is not known."""
    platform: str
    """The platform of this host."""
    versions: dict[str, str]
    """The versions of tenv and its dependencies, by name."""
    folders: dict[str, str | None]
    """The folders by name; None for a missing one."""
    caches: dict[str, str]
    """The folders of the caches, by name."""
    settings: tuple[Setting, ...]
    """The settings with their origins."""
    index: str
    """The indexes of wheels in the order in which they are asked."""
    others: tuple[str, ...]
    """Other programs called tenv on PATH, in the order of PATH."""

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
    found = context.uv()
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
    return without_login(re.sub(r"^[\w.-]+=(?=\w+://|/)", "", text))
