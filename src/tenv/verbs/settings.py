"""Read the settings of the user and of the project with their origins, and write them, keeping comments."""

from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import UsageError
from tenv.core.files import read_regular, write_atomic
from tenv.core.size_text import format_bytes
from tenv.core.toml_reader import nearest, read_toml
from tenv.project.context import Context, is_set
from tenv.targets.config import PROJECT_FILE, link_mode, read_project_settings, read_settings, unpack_limit
from tenv.targets.search import settings_folder

__all__ = ["Setting", "change_setting", "default_of", "set_default", "settings_in_use"]

_KEYS = {
    "default": (PROJECT_FILE,),
    "sync": (PROJECT_FILE, "config.toml"),
    "mirrors": ("config.toml",),
    "link-mode": ("config.toml",),
    "unpack-limit": ("config.toml",),
    "cache-storage": ("config.toml",),
}
_VARIABLES = ("TENV_LOCKED", "TENV_FROZEN", "TENV_OFFLINE")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting in use.

    Attributes:
        name: Its key, or the variable.
        value: Its value.
        origin: Its file, ``environment``, or ``default``.
    """

    name: str
    value: Any
    origin: str

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
    mode, mode_origin = link_mode(settings_folder(), context.environ)
    found.append(Setting("link-mode", mode.value, mode_origin))
    limit, limit_origin = unpack_limit(settings_folder(), context.environ)
    found.append(Setting("unpack-limit", limit and format_bytes(limit), limit_origin))
    storage = user.cache_storage
    found.append(Setting("cache-storage", storage or None, str(own) if storage else "default"))
    return found + [
        Setting(name, value, "environment" if name in context.environ else "default")
        for name in _VARIABLES
        for value in (is_set(name),)
    ]


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
        value: Its value, several mirrors separated by commas. None removes it.
        project: Whether to write the project's file in place of the user's, if both can have the setting.

    Raises:
        UsageError: The setting does not exist, or its value is not valid; the file is then unchanged.
        UnknownTargetError: The default is to be a target that does not exist.
    """
    import tomlkit  # late: 22 ms

    name, _, start = key.partition(".")
    if name not in _KEYS or (name == "mirrors") != bool(start):
        raise _unknown_setting(key, value)
    file = _file(context, name, project=project)
    if name == "default" and value is not None:
        context.places.find(value)
    before = read_regular(file).decode("utf-8-sig").replace("\r\n", "\n") if file.is_file() else ""
    document = tomlkit.parse(before)
    table: Any = document.setdefault("mirrors", tomlkit.table()) if start else document
    if value is None:
        table.pop(start or name, None)
    else:
        table[start or name] = _value(name, value)
    write_atomic(file, document.as_string())
    try:
        (read_project_settings if file.name == PROJECT_FILE else read_settings)(file.parent)
    except UsageError:
        write_atomic(file, before)
        raise
    return file


def _unknown_setting(key: str, value: str | None) -> UsageError:
    """Return the error for a setting that does not exist, with the nearest one as it is typed."""
    name, _, start = key.partition(".")
    if name == "mirrors":
        from tenv.core.names import channel_url  # late: only for this error

        line = f"`tenv config mirrors.{channel_url('conda-forge')} {value or 'MIRROR'}` sets that of conda-forge"
        return UsageError("`mirrors` needs the URL that is replaced", hint=line)
    known = [f"{one}.{start or 'URL'}" if one == "mirrors" else one for one in _KEYS]
    close = nearest(key, known) or nearest(name, _KEYS)
    return UsageError(f"unknown setting `{key}`", hint=close or f"known settings: {', '.join(known)}")


def _file(context: Context, name: str, *, project: bool) -> Path:
    if PROJECT_FILE not in _KEYS[name] or (not project and len(_KEYS[name]) > 1):
        return settings_folder() / "config.toml"
    if context.places.project is None:
        raise UsageError("there is no project", hint="`tenv init` makes this folder a project")
    return context.places.project / PROJECT_FILE


def _value(name: str, text: str) -> Any:
    if name == "mirrors":
        return [part.strip() for part in text.split(",")]
    if name == "sync":
        if text not in ("true", "false"):
            raise UsageError(f"sync: expected true or false, got `{text}`", hint="`tenv config sync true`")
        return text == "true"
    return text
