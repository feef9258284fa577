"""Access to conda channels: the user's rattler and pixi settings, overridden by tenv's mirrors, and its faults."""

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tenv import __version__
from tenv.core.certificates import Authorities
from tenv.core.dataclass import dataclass
from tenv.core.errors import CertificateError, NetworkError, StorageError, UsageError
from tenv.core.http import Http, Unanswered
from tenv.core.http_settings import HttpSettings, Patience
from tenv.core.user_folders import user_cache

if TYPE_CHECKING:
    from rattler import Client, Config, Gateway

    from tenv.core.carried_files import CarriedFiles

_TIMEOUT = 600
"""Seconds for one request; callers limit the time of a whole lock."""


@dataclass(frozen=True, slots=True)
class Network:
    """The access to channels."""

    mirrors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Alternative URLs by URL prefix; they win over the mirrors of rattler and pixi."""
    offline: bool = False
    """Use only the cache."""
    timeout: int = _TIMEOUT
    """Seconds for one request."""
    retries: int = 3
    """How often a request with a transient failure is repeated."""
    authorities: Authorities = field(default_factory=Authorities)
    """The trusted certificate authorities."""
    carried: "CarriedFiles | None" = None
    """The packages that are taken from a folder, by their digests; None without such a folder."""

    def mirrored(self, url: str) -> Path | None:
        """Return the file of a URL in a mirror that is a folder, which rattler 0.28 does not read; None without one."""
        for start in sorted(self.mirrors, key=len, reverse=True):
            if url.startswith(start.rstrip("/") + "/"):
                from urllib.request import url2pathname  # late: 20 ms, since it imports all of HTTP

                rest = url.removeprefix(start.rstrip("/"))
                folders = (urlsplit(mirror) for mirror in self.mirrors[start] if mirror.startswith("file:"))
                files = (Path(url2pathname(folder.path.rstrip("/") + rest)) for folder in folders)
                return next(filter(Path.is_file, files), None)
        return None


def cache_folder() -> Path:
    """Return the download folder of rattler and pixi, which tenv shares."""
    named = os.environ.get("PIXI_CACHE_DIR") or os.environ.get("RATTLER_CACHE_DIR")
    return Path(named) if named else user_cache("rattler") / "cache"


def load_config(network: Network) -> "Config":
    """Return the settings of mirrors, proxies and credentials in rattler's and pixi's configuration files.

    Raises:
        UsageError: A file is unreadable, or a mirror is not a URL.
    """
    from rattler import Config  # late: 40 ms and 25 MB

    config = Config()
    for path, shared in Config.config_search_paths("pixi"):
        if path.is_file():
            try:
                config = config.merge(Config.load_from_locations([(path, shared)]))
            except Exception as error:  # rattler's errors have no common base below Exception
                raise UsageError(f"{path}: {_told(error)}", hint="fix or remove that file") from error
    own = Config()
    for url, served in network.mirrors.items():
        try:
            own.set(f'mirrors."{url}"', json.dumps(list(served)))
        except Exception as error:
            raise UsageError(f"the mirrors of {url} are unusable: {_told(error)}") from error
    return config.merge(own)


def _told(error: Exception) -> str:
    return str(error).strip().splitlines()[-1]


def open_client(network: Network) -> "Client":
    """Return the client for requests, with retries, credentials, mirrors, proxies and certificates.

    Raises:
        UsageError: rattler's or pixi's configuration is unusable.
        CertificateError: The user's setting has no certificate authority.
    """
    from rattler import Client

    config = load_config(network)
    with _certificates(network):
        try:
            return Client.from_config(
                config, network.retries, user_agent=f"tenv/{__version__}", timeout=network.timeout
            )
        except ValueError as error:  # its only message: "builder error"
            if network.authorities.setting:
                raise network.authorities.nothing_found() from error
            raise


@contextlib.contextmanager
def _certificates(network: Network) -> Iterator[None]:
    """Make a client that is created in the body verify servers with the user's authorities.

    rattler has no other way to set them: it reads SSL_CERT_FILE and SSL_CERT_DIR of this process when it creates a
    client, and never later. Offline they are not used and may name missing files.
    """
    with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
        before = {name: os.environ.pop(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if name in os.environ}
        named = {} if network.offline else network.authorities.variables(Path(folder))
        os.environ.update(named)
        try:
            yield
        finally:
            for name in named:
                os.environ.pop(name, None)
            os.environ.update(before)


def open_gateway(network: Network) -> "Gateway":
    """Return the gateway to the package lists of channels, with the cache that pixi shares."""
    from rattler import Gateway, SourceConfig

    cache = cache_folder() / "repodata"
    if network.offline:
        source = SourceConfig(cache_action="force-cache-only")
        return Gateway(cache_dir=cache, default_config=source, client=open_client(network))
    return Gateway.from_config(load_config(network), cache_dir=cache, client=open_client(network))


_UNSENT = re.compile(r"error sending request for url \((https://[^\s()]+)\)")


def one_line(error: Exception) -> str:
    """Return an error of rattler, which has a line for each cause, as one line.

    A cause that an earlier line ends in is left out: rattler repeats the causes of some errors, paths and all.
    """
    found: list[str] = []
    for line in str(error).splitlines():
        text = line.removeprefix("Caused by: ").strip().rstrip(".")
        if not any(text in earlier for earlier in found):
            found.append(text)
    return ": ".join(found) or type(error).__name__


def storage_error(error: OSError, what: str) -> StorageError:
    """Return the error about a full or unwritable disk."""
    where = f" ({error.filename})" if error.filename else ""
    return StorageError(f"{what}: {error.strerror or error}{where}", hint="free some space or choose another folder")


def refused_certificate(output: str, authorities: Authorities) -> CertificateError | None:
    """Return the error about a certificate that rattler rejected; None for other errors."""
    fault = connection_fault(output, authorities)
    return fault if isinstance(fault, CertificateError) else None


def unsent_server(output: str) -> str:
    """Return the scheme and the host of a request of HTTPS that rattler could not send; empty for other errors."""
    match = _UNSENT.search(output)
    return "/".join(match[1].split("/")[:3]) if match else ""


def connection_fault(output: str, authorities: Authorities) -> CertificateError | NetworkError | None:
    """Return the reason why a request could not be sent; None for other errors.

    rattler reports the address but not the cause, so the address is requested again.
    """
    if refusal := authorities.refusal(output):
        return refusal
    if match := _UNSENT.search(output):
        try:
            Http(HttpSettings(authorities, Patience(attempts=1))).head(match[1])
        except (CertificateError, NetworkError) as error:
            return error
        except Unanswered as error:
            return NetworkError(f"{match[1]}: {error}")
    return None
