"""The storage behind a compile cache that several machines share: its variables for ccache and for sccache.

Sources: docs/Configuration.md, S3.md, Redis.md, Webdav.md, GHA.md, GCS.md, Memcached.md and Local.md of
github.com/mozilla/sccache (0.16); `remote_storage` of ccache's manual (4.14).
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from tenv.core.user_folders import user_home

__all__ = ["STORED_BY_CCACHE", "storage_variables", "stores"]

STORED_BY_CCACHE = ("http", "https", "redis", "file")
"""The storages that ccache knows, by the scheme of their addresses."""

_LONGEST_SOCKET = 100
"""Bytes; unix(7) allows 107."""


def stores(cache: str, storage: str) -> bool:
    """Tell whether a compile cache knows a storage: sccache knows all that a manifest can name."""
    return cache != "ccache" or storage.partition("://")[0] in STORED_BY_CCACHE


def storage_variables(cache: str, storage: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which a compile cache shares a storage; empty without one.

    Logins are not among them: the programs read those from variables of their own (`AWS_ACCESS_KEY_ID`,
    `SCCACHE_REDIS_PASSWORD`, `SCCACHE_WEBDAV_TOKEN`), which the user's shell has.

    Args:
        cache: ``ccache`` or ``sccache``.
        storage: What the manifest or the user's settings name.
        environ: The environment; a storage that the user's shell names for this cache wins.
    """
    if not storage or not stores(cache, storage):
        return {}
    if cache == "ccache":
        return {} if "CCACHE_REMOTE_STORAGE" in environ else {"CCACHE_REMOTE_STORAGE": _of_ccache(storage)}
    found = _of_sccache(storage)
    if any(name in environ for name in (*found, "SCCACHE_CONF", "SCCACHE_SERVER_PORT", "SCCACHE_SERVER_UDS")):
        return {}
    return {**found, "SCCACHE_SERVER_UDS": _socket(found, environ)}


def _of_ccache(storage: str) -> str:
    return storage.replace("file://", "file:", 1) if storage.startswith("file://") else storage


def _of_sccache(storage: str) -> dict[str, str]:
    if storage == "gha":
        return {"SCCACHE_GHA_ENABLED": "true"}
    parts = urlsplit(storage)
    below, options = parts.path.strip("/"), dict(parse_qsl(parts.query))
    scheme = parts.scheme
    if scheme == "s3":
        found = {"SCCACHE_BUCKET": parts.netloc, "SCCACHE_S3_KEY_PREFIX": below}
        found |= {f"SCCACHE_{name.upper()}": options.get(name, "") for name in ("region", "endpoint")}
        found["SCCACHE_S3_USE_SSL"] = options.get("use_ssl", "")
    elif scheme == "gs":
        found = {
            "SCCACHE_GCS_BUCKET": parts.netloc,
            "SCCACHE_GCS_KEY_PREFIX": below,
            "SCCACHE_GCS_RW_MODE": "READ_WRITE",
        }
    elif scheme in ("redis", "rediss"):
        found = {"SCCACHE_REDIS_ENDPOINT": f"{scheme}://{parts.netloc}", "SCCACHE_REDIS_DB": below}
    elif scheme == "memcached":
        found = {"SCCACHE_MEMCACHED_ENDPOINT": f"tcp://{parts.netloc}", "SCCACHE_MEMCACHED_KEY_PREFIX": below}
    elif scheme == "file":
        found = {"SCCACHE_DIR": parts.path}
    else:
        found = {"SCCACHE_WEBDAV_ENDPOINT": f"{scheme}://{parts.netloc}", "SCCACHE_WEBDAV_KEY_PREFIX": below}
    return {name: value for name, value in found.items() if value}


def _socket(settings: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Return the socket of a server for these settings alone: one that runs already would keep its own storage."""
    digest = hashlib.sha256(repr(sorted(settings.items())).encode()).hexdigest()[:12]
    home = Path(environ.get("HOME") or user_home(), ".cache")
    for folder in (environ.get("XDG_RUNTIME_DIR", ""), environ.get("XDG_CACHE_HOME", ""), str(home)):
        path = Path(folder, f"tenv-sccache-{digest}.sock")
        if folder and Path(folder).is_dir() and len(os.fsencode(path)) <= _LONGEST_SOCKET:
            return str(path)
    return str(home / f"tenv-sccache-{digest}.sock")
