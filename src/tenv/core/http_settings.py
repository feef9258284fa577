"""The user's settings of connections: certificates, proxies, credentials, timeouts."""

from collections.abc import Callable, Mapping
from dataclasses import field
from urllib.parse import urlsplit, urlunsplit

from tenv.core.certificates import Authorities
from tenv.core.dataclass import dataclass

_PORTS = {"http": 80, "https": 443}

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
        """Return the values of TENV_HTTP_TIMEOUT (seconds) and TENV_HTTP_RETRIES; invalid values are ignored."""
        default = cls()
        try:
            seconds = float(environment.get("TENV_HTTP_TIMEOUT", default.read))
            retries = int(environment.get("TENV_HTTP_RETRIES", default.attempts - 1))
        except ValueError:
            return default
        if seconds <= 0 or retries < 0:
            return default
        return cls(min(default.connect, seconds), seconds, retries + 1, default.pause, default.slow, seconds)


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
