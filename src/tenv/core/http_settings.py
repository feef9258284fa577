"""The user's settings of connections: certificates, proxies, credentials, timeouts."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from typing import TypeVar
from urllib.parse import urlsplit, urlunsplit

from tenv.core.certificates import Authorities
from tenv.core.dataclass import dataclass
from tenv.core.errors import UsageError

_PORTS = {"http": 80, "https": 443}
_SHORTEST, _DAY = 0.001, 86_400
"""Seconds of a request: what is longer does not fit into the system's values."""

_Number = TypeVar("_Number", int, float)

Login = tuple[str, str]
"""A user and a password."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Timeouts and retries."""

    connect: float = 10.0
    """Seconds for a connection."""
    read: float = 30.0
    """Seconds between two pieces of an answer."""
    attempts: int = 4
    """How often a failing request is sent."""
    pause: float = 0.5
    """Seconds before the second attempt, doubled before each later one."""
    slow: float = 1024.0
    """Bytes per second below which a download counts as stuck."""
    window: float = 30.0
    """Seconds over which the rate is measured."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Patience":
        """Return the values of TENV_HTTP_TIMEOUT (seconds) and TENV_HTTP_RETRIES.

        Raises:
            UsageError: A value is no such number.
        """
        default = cls()
        seconds = _number(environment, "TENV_HTTP_TIMEOUT", float, default.read, _SHORTEST)
        retries = _number(environment, "TENV_HTTP_RETRIES", int, default.attempts - 1, 0)
        return cls(min(default.connect, seconds), seconds, retries + 1, default.pause, default.slow, seconds)


def _number(
    environment: Mapping[str, str], name: str, kind: Callable[[str], _Number], otherwise: _Number, least: _Number
) -> _Number:
    if not (text := environment.get(name, "")):
        return otherwise
    with suppress(ValueError):
        if least <= (value := kind(text)) <= _DAY:
            return value
    what = "whole number" if kind is int else "number"
    raise UsageError(
        f"{name}: expected a {what} from {least} to {_DAY}, got `{text}`", hint=f"`export {name}={otherwise:g}`"
    )


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The user's settings of connections."""

    authorities: Authorities = field(default_factory=Authorities)
    """The trusted certificate authorities."""
    patience: Patience = field(default_factory=Patience)
    """Timeouts and retries."""
    proxies: Mapping[str, str] = field(default_factory=dict)
    """Proxies by scheme or ``all``; the usual variables take precedence."""
    no_proxy: str = ""
    """Hosts without a proxy, separated by commas, in addition to NO_PROXY."""
    insecure: tuple[str, ...] = ()
    """Hosts, with or without a port, whose certificate is not verified."""
    logins: Mapping[str, Login] = field(default_factory=dict, repr=False)
    """Users and passwords by origin (see `origin_of`), sent with the first request."""
    ask: Callable[[str], Login | None] = lambda _url: None
    """Returns a user and a password for a URL that was rejected without; None if there are none."""


def shown(url: str) -> str:
    """Return an address for messages: without user, password and query, which may hold a key."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an unreadable address"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def origin_of(url: str) -> str:
    """Return the scheme, host and port that credentials are for, such as ``https://host:443``."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{parts.port or _PORTS.get(parts.scheme, 0)}"
