"""The user's package indexes, configured for uv or pip, as settings for uv.

uv reads its own variables and files, not pip's. Many machines (with a company's mirror, without internet) configure
only pip. So if nothing names an index for uv, uv gets pip's.
"""

import configparser
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import UsageError
from tenv.core.http_settings import HttpSettings
from tenv.core.link_mode import LINK_MODE, LinkMode
from tenv.core.toml_reader import read_toml
from tenv.core.truth_words import is_true
from tenv.sources.wheels.connections import connections
from tenv.targets.config import Settings

_UV_KEPT = (
    "UV_CACHE_DIR",
    "UV_CONCURRENT_",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_HTTP_",
    "UV_INDEX",
    "UV_INSECURE_HOST",
    "UV_KEYRING_PROVIDER",
    "UV_LINK_MODE",
    "UV_NATIVE_TLS",
    "UV_NO_CACHE",
    "UV_NO_INDEX",
    "UV_PYTHON_CPYTHON_BUILD",
    "UV_PYTHON_DOWNLOADS",
    "UV_PYTHON_INSTALL",
    "UV_REQUEST_TIMEOUT",
    "UV_SYSTEM_CERTS",
)
"""Variables for uv's indexes, connections and cache. Others (UV_CONSTRAINT, UV_RESOLUTION, UV_PYTHON …) would make the
selection depend on the machine, so uv does not get them."""

_CONFIG_INDEX = ("index", "index-url", "extra-index-url", "find-links", "no-index")
_CONFIG_KEPT = (
    *_CONFIG_INDEX,
    *("allow-insecure-host", "cache-dir", "concurrent-downloads", "concurrent-installs", "http-proxy", "https-proxy"),
    *("index-strategy", "keyring-provider", "link-mode", "native-tls", "no-proxy", "offline", "python-downloads"),
    *("python-downloads-json-url", "python-install-mirror", "system-certs"),
)
"""The same keys of uv.toml; uv does not get `exclude-newer`, `resolution`, `constraint-dependencies` …"""

_UV_INDEX = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX")
_URL = re.compile(r"\w+://[^\s,]+")
_NO_SETTINGS = Settings()
_DROPPED = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONHOME", "PYTHONPATH", "RUST_LOG")


@dataclass(frozen=True, slots=True)
class UvSettings:
    """The settings with which tenv runs uv."""

    environment: Mapping[str, str]
    """Its environment variables."""
    configuration: Mapping[str, Any]
    """The content of its configuration file; empty for no file."""
    offline: bool
    """Whether the user's settings turn off uv's network."""
    http: HttpSettings
    """The HTTP settings for tenv's own requests."""


def uv_settings(environment: Mapping[str, str], home: Path, user: Settings = _NO_SETTINGS) -> UvSettings:
    """Return the settings for uv: the user's indexes, or their mirrors, connections and cache, and no others.

    Args:
        environment: The environment variables of this process.
        home: The user's home folder.
        user: The user's settings of tenv, for mirrors.

    Raises:
        UsageError: A configuration file of uv can't be read.
    """
    configuration = _uv_configuration(environment, home)
    kept = {
        name: value
        for name, value in environment.items()
        if name not in _DROPPED and (not name.startswith("UV_") or name.startswith(_UV_KEPT))
    }
    if kept.pop(LINK_MODE, "") == LinkMode.COPY and "link-mode" not in configuration:
        kept.setdefault("UV_LINK_MODE", LinkMode.COPY)  # uv's own setting wins
    pip: Mapping[str, str] = {}
    if not any(kept.get(name) for name in _UV_INDEX) and configuration.keys().isdisjoint(_CONFIG_INDEX):
        pip = pip_settings(environment, home)
        kept.update(_for_uv(pip))
    kept |= {name: _URL.sub(lambda url: user.served(url[0])[0], kept[name]) for name in _UV_INDEX if name in kept}
    configuration |= {key: _mirrored(configuration[key], user) for key in _CONFIG_INDEX if key in configuration}
    offline = bool(is_true(environment.get("UV_OFFLINE", "")))
    mirrors = [url for served in user.mirrors.values() for url in served]
    return UvSettings(kept, configuration, offline, connections(kept, configuration, pip, mirrors))


def _mirrored(value: Any, user: Settings) -> Any:
    """Return a value of uv's settings for indexes, with their mirrors in the place of their URLs."""
    if isinstance(value, list):
        return [_mirrored(one, user) for one in value]
    if isinstance(value, dict):
        return {**value, "url": _mirrored(value["url"], user)} if "url" in value else value
    return user.served(value)[0] if isinstance(value, str) else value


def _uv_configuration(environment: Mapping[str, str], home: Path) -> dict[str, Any]:
    """Return the settings for indexes in the user's and the system's ``uv.toml``; the user's win."""
    found: dict[str, Any] = {}
    for path in reversed(list(_uv_files(environment, home))):
        if path.is_file() or path == Path(environment.get("UV_CONFIG_FILE", "")):
            data = read_toml(path, UsageError).data
            settings = {**data.get("pip", {}), **data}
            found |= {key: value for key, value in settings.items() if key in _CONFIG_KEPT}
            if isinstance(links := found.get("find-links"), list):
                found["find-links"] = [_absolute(str(link), path.parent) for link in links]
    return found


def _uv_files(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Yield the configuration files of uv, highest precedence first."""
    if named := environment.get("UV_CONFIG_FILE"):
        yield Path(named)
    elif not environment.get("UV_NO_CONFIG"):
        yield Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "uv" / "uv.toml"
        if sys.platform == "win32":
            yield Path(environment.get("APPDATA", "")) / "uv" / "uv.toml"
        else:
            yield from (Path(folder) / "uv" / "uv.toml" for folder in _system_folders(environment))
            yield Path("/etc/uv/uv.toml")


def _absolute(link: str, folder: Path) -> str:
    """Return a folder of wheels as an absolute path, since uv runs in another folder."""
    return link if "://" in link else os.path.abspath(folder / os.path.expanduser(link))  # noqa: PTH100, PTH111


def _system_folders(environment: Mapping[str, str]) -> list[str]:
    return [folder for folder in environment.get("XDG_CONFIG_DIRS", "/etc/xdg").split(os.pathsep) if folder]


def pip_settings(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return pip's settings by their long option names; variables win over files, as in pip.

    Files are read in pip's own order (its documentation, "Configuration Files"): system, user, PIP_CONFIG_FILE.
    """
    found: dict[str, str] = {}
    if environment.get("PIP_CONFIG_FILE") != os.devnull:
        for path in _pip_files(environment, home):
            parser = configparser.RawConfigParser()
            try:
                parser.read(path, encoding="utf-8")
            except (configparser.Error, UnicodeDecodeError):  # pip stops here; tenv goes on without this file
                continue
            for section in ("global", "install"):
                if parser.has_section(section):
                    found.update(parser.items(section))
    for name, value in environment.items():
        if name.startswith("PIP_") and value:
            found[name[4:].lower().replace("_", "-")] = value
    return found


def _pip_files(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    if sys.platform == "win32":
        yield Path(environment.get("PROGRAMDATA", "C:\\ProgramData")) / "pip" / "pip.ini"
        yield home / "pip" / "pip.ini"
        yield Path(environment.get("APPDATA", "")) / "pip" / "pip.ini"
    else:
        yield from (Path(folder) / "pip" / "pip.conf" for folder in reversed(_system_folders(environment)))
        yield Path("/etc/pip.conf")
        yield home / ".pip" / "pip.conf"
        yield Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf"
    if named := environment.get("PIP_CONFIG_FILE"):
        yield Path(named)


def _for_uv(pip: Mapping[str, str]) -> dict[str, str]:
    found = {}
    if url := pip.get("index-url"):
        found["UV_DEFAULT_INDEX"] = url
    if extra := pip.get("extra-index-url"):
        found["UV_INDEX"] = " ".join(extra.split())
    if links := pip.get("find-links"):
        found["UV_FIND_LINKS"] = ",".join(_absolute(link, Path.cwd()) for link in links.split())
    if pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        found["UV_NO_INDEX"] = "1"
    if hosts := pip.get("trusted-host"):
        found["UV_INSECURE_HOST"] = " ".join(hosts.split())
    if pip.get("keyring-provider") in ("import", "subprocess"):
        found["UV_KEYRING_PROVIDER"] = "subprocess"
    if found.keys() & {"UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS"}:
        # pip takes the best version across all indexes, so uv must do so too.
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    if proxy := pip.get("proxy"):
        found["ALL_PROXY"] = proxy
    return found


def index_rows(variables: Mapping[str, str], configuration: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the indexes of variables and configuration as rows of ``[[index]]``, in the order in which uv asks.

    Source: `IndexArgs` and `IndexLocations` of uv 0.13. Of several rows with one name, and of several default ones, uv
    takes the first. `extra-index-url` of a configuration stays where it is, behind all rows.
    """
    last = variables.get("UV_INDEX_URL") or str(configuration.get("index-url", ""))
    rows = [_row(word) | {"default": True} for word in variables.get("UV_DEFAULT_INDEX", "").split()]
    rows += [_row(word) for word in variables.get("UV_INDEX", "").split()]
    rows += [dict(row) for row in configuration.get("index", ()) if isinstance(row, dict) and "url" in row]
    rows += [_row(word) for word in variables.get("UV_EXTRA_INDEX_URL", "").split()]
    rows += [_row(last) | {"default": True}] if last else []
    found: list[dict[str, Any]] = []
    for row in rows:
        named = "name" in row and any(row["name"] == other.get("name") for other in found)
        if not named and not (row.get("default") and any(other.get("default") for other in found)):
            found.append(row)
    return found


def _row(word: str) -> dict[str, Any]:
    name, separator, url = word.partition("=")
    return {"name": name, "url": url} if separator and re.fullmatch(r"[\w.-]+", name) else {"url": word}
