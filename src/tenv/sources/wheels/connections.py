"""The connection settings of uv and pip, for tenv's own requests.

uv strips credentials from the URLs that it prints. This module finds them again: in the URLs of the indexes, in
``UV_INDEX_NAME_USERNAME`` and, after a server's refusal, in uv's store and in a keyring.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from tenv.core import process
from tenv.core.certificates import find_authorities
from tenv.core.dataclass import dataclass
from tenv.core.http_settings import HttpSettings, Login, Patience, origin_of
from tenv.core.truth_words import is_true

_SECONDS = 30.0
_ONE_URL = ("UV_DEFAULT_INDEX", "UV_INDEX_URL")
_URLS = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")
_SYSTEM = ("UV_SYSTEM_CERTS", "UV_NATIVE_TLS")


def connections(
    environment: Mapping[str, str],
    configuration: Mapping[str, Any],
    pip: Mapping[str, str],
    mirrors: Iterable[str] = (),
) -> HttpSettings:
    """Return the HTTP settings of the user.

    Args:
        environment: The environment variables for uv.
        configuration: The settings in uv's files.
        pip: pip's settings, if they count.
        mirrors: The mirrors of indexes, for the logins in their URLs.
    """
    urls = [*index_urls(environment, configuration), *(("", url) for url in mirrors if _is_http(url))]
    configured = {"http": configuration.get("http-proxy"), "https": configuration.get("https-proxy")}
    proxies = {scheme: str(url) for scheme, url in {"all": pip.get("proxy"), **configured}.items() if url}
    no_proxy = configuration.get("no-proxy", ())
    hosts = configuration.get("allow-insecure-host", ())
    insecure = (*environment.get("UV_INSECURE_HOST", "").split(), *([hosts] if isinstance(hosts, str) else hosts))
    return HttpSettings(
        authorities=find_authorities(
            environment, system=_system(environment, configuration), pip_cert=pip.get("cert", "")
        ),
        patience=Patience.of(environment),
        proxies=proxies,
        no_proxy=no_proxy if isinstance(no_proxy, str) else ",".join(map(str, no_proxy)),
        insecure=tuple(str(host).partition("://")[2] or str(host) for host in insecure),
        logins={
            origin_of(url): (login[0], login[1])
            for name, url in reversed(urls)
            if (login := _login(name, url, environment))[1]
        },
    )


def _system(environment: Mapping[str, str], configuration: Mapping[str, Any]) -> str:
    """Return the setting of uv that selects the operating system's authorities; empty for none."""
    for name in _SYSTEM:
        if environment.get(name):
            return name if is_true(environment[name]) else ""
    return next((f"{key} of uv.toml" for key in ("system-certs", "native-tls") if configuration.get(key) is True), "")


def index_urls(environment: Mapping[str, str], configuration: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name (often empty) and the URL of every index of uv."""
    found = [environment.get(name, "") for name in _ONE_URL]
    found += [word for name in _URLS for word in re.split(r"[\s,]+", environment.get(name, ""))]
    for key in ("index-url", "extra-index-url", "find-links"):
        value = configuration.get(key, ())
        found += [value] if isinstance(value, str) else map(str, value)
    for text in found:
        name, _, url = text.partition("=") if re.match(r"[\w.-]+=", text) else ("", "", text)
        if _is_http(url):
            yield name, url
    for row in configuration.get("index", ()):
        if isinstance(row, dict) and _is_http(str(row.get("url", ""))):
            yield str(row.get("name", "")), str(row["url"])


def _is_http(url: str) -> bool:
    """Return whether a text is a URL of HTTP; uv reports a broken one, such as ``https://[::1``."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:
        return False


def _login(name: str, url: str, environment: Mapping[str, str]) -> Login:
    """Return the user and the password of an index; each is empty if not set."""
    variable = "UV_INDEX_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
    parts = urlsplit(url)
    user = (name and environment.get(f"{variable}_USERNAME")) or unquote(parts.username or "")
    return user, (name and environment.get(f"{variable}_PASSWORD")) or unquote(parts.password or "")


@dataclass(frozen=True, slots=True)
class Keyring:
    """The programs that store passwords: uv itself, and `keyring` if uv's settings select it."""

    environment: Mapping[str, str]
    """The environment variables for uv."""
    configuration: Mapping[str, Any]
    """The settings in uv's files."""
    uv: Callable[..., str]
    """Runs uv with arguments and returns its output; empty on failure."""

    def ask(self, url: str) -> Login | None:
        """Return the user and the password for a URL; None if no program has them."""
        indexes = [
            row for row in index_urls(self.environment, self.configuration) if origin_of(row[1]) == origin_of(url)
        ]
        users = [user for name, index in indexes if (user := _login(name, index, self.environment)[0])]
        user = next(iter(users), "") or unquote(urlsplit(url).username or "")
        for service in dict.fromkeys(bare_url(service) for service in (*(index for _, index in indexes), url)):
            if found := self._stored(service, user) or self._kept(service, user):
                return found
        return self._kept(urlsplit(url).netloc.rpartition("@")[2], user)

    def _stored(self, service: str, user: str) -> Login | None:
        """Return the credentials stored by `uv auth login`."""
        password = self.uv("auth", "token", service, *(["--username", user] if user else [])).strip()
        return (user or "__token__", password) if password else None

    def _kept(self, service: str, user: str) -> Login | None:
        """Return the credentials in a keyring, with the queries of uv and pip."""
        provider = self.environment.get("UV_KEYRING_PROVIDER") or self.configuration.get("keyring-provider")
        program = process.find("keyring", self.environment.get("PATH")) if provider == "subprocess" else None
        if program is None:
            return None
        words = [user] if user else ["--mode", "creds"]
        done = process.run(
            [program, "get", service, *words], environment=self.environment, timeout=_SECONDS, bound=False
        )
        if isinstance(done, process.Missing) or done.status:
            return None
        lines = done.stdout.splitlines()
        if user:
            return (user, lines[0]) if lines else None
        return (lines[0], lines[1]) if len(lines) > 1 else None


def bare_url(url: str) -> str:
    """Return a URL without credentials."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
