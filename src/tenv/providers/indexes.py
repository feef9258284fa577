"""The package indexes that the user has already set up, for uv and for pip, as an environment for uv.

uv reads its own environment and configuration. pip's it does not, and on many machines (a company's mirror, a
cluster without the internet) pip's is the one that is there: so where nothing names an index to uv, pip's is handed on.
"""

import configparser
import os
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

__all__ = ["pip_settings", "uv_environment"]

_UV_KEPT = (
    "UV_CACHE_DIR",
    "UV_CONCURRENT_",
    "UV_CONFIG_FILE",
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
    "UV_NO_CONFIG",
    "UV_NO_INDEX",
    "UV_PYTHON_CPYTHON_BUILD",
    "UV_PYTHON_DOWNLOADS",
    "UV_PYTHON_INSTALL",
    "UV_REQUEST_TIMEOUT",
    "UV_SYSTEM_CERTS",
)
"""Settings of where uv gets files from and how it keeps them. All others (UV_CONSTRAINT, UV_RESOLUTION, UV_PYTHON …)
would change what is chosen from one machine to the next, so they are not handed on."""

_UV_INDEX = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX")
_DROPPED = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONHOME", "PYTHONPATH", "RUST_LOG")


def uv_environment(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the environment in which uv is run.

    Args:
        environment: The environment of this process.
        home: The user's home folder.
    """
    kept = {
        name: value
        for name, value in environment.items()
        if name not in _DROPPED and (not name.startswith("UV_") or name.startswith(_UV_KEPT))
    }
    if not _uv_names_an_index(kept, home):
        kept.update(_for_uv(pip_settings(environment, home)))
    return kept


def _uv_names_an_index(environment: Mapping[str, str], home: Path) -> bool:
    if any(environment.get(name) for name in _UV_INDEX):
        return True
    return any(_has_index(path) for path in _uv_files(environment, home))


def _uv_files(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    if named := environment.get("UV_CONFIG_FILE"):
        yield Path(named)
    elif not environment.get("UV_NO_CONFIG"):
        yield Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "uv" / "uv.toml"
        if sys.platform == "win32":
            yield Path(environment.get("APPDATA", "")) / "uv" / "uv.toml"
        else:
            yield from (Path(folder) / "uv" / "uv.toml" for folder in _system_folders(environment))
            yield Path("/etc/uv/uv.toml")


def _system_folders(environment: Mapping[str, str]) -> list[str]:
    return [folder for folder in environment.get("XDG_CONFIG_DIRS", "/etc/xdg").split(os.pathsep) if folder]


def _has_index(path: Path) -> bool:
    try:
        data = tomllib.loads(path.read_text())
    except (OSError, ValueError):  # not there, or uv itself will say what is wrong with it
        return False
    keys = ("index", "index-url", "extra-index-url", "find-links", "no-index", "default-index")
    return any(key in data or key in data.get("pip", {}) for key in keys)


def pip_settings(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return pip's settings by their long option names, as pip would take them: environment over files.

    Files are read in pip's own order (its documentation, "Configuration Files"): system, user, PIP_CONFIG_FILE.
    """
    found: dict[str, str] = {}
    if environment.get("PIP_CONFIG_FILE") != os.devnull:
        for path in _pip_files(environment, home):
            parser = configparser.RawConfigParser()
            try:
                parser.read(path, encoding="utf-8")
            except (configparser.Error, UnicodeDecodeError):  # pip would stop here; wheels may still be had
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
        # Relative to the folder the user is in, not to the one in which uv is run.
        found["UV_FIND_LINKS"] = ",".join(
            link if "://" in link else os.path.abspath(os.path.expanduser(link))  # noqa: PTH100, PTH111
            for link in links.split()
        )
    if pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        found["UV_NO_INDEX"] = "1"
    if hosts := pip.get("trusted-host"):
        found["UV_INSECURE_HOST"] = " ".join(hosts.split())
    if certificate := pip.get("cert"):
        found["SSL_CERT_FILE"] = certificate
    if found.keys() & {"UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS"}:
        # pip takes the best version over all its indexes; whoever set them up for pip counts on that.
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    if proxy := pip.get("proxy"):
        found["ALL_PROXY"] = proxy
    return found
