"""What a user's settings say of connections: certificates, proxies, credentials, patience."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from tenv.core.certificates import Authorities

__all__ = ["HttpSettings", "Login", "Patience", "origin_of", "shown"]

_PORTS = {"http": 80, "https": 443}

Login = tuple[str, str]
"""A user and a password."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a server is waited for.

    Attributes:
        connect: Seconds for a connection.
        read: Seconds between two pieces of an answer.
        attempts: How often a request that brings nothing is made.
        pause: Seconds before the second one, doubled before each that follows.
        slow: Bytes a second below which a download counts as stuck.
        window: Seconds over which that is measured.
    """

    connect: float = 10.0
    read: float = 30.0
    attempts: int = 4
    pause: float = 0.5
    slow: float = 1024.0
    window: float = 30.0

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Patience":
        """Return what TENV_HTTP_TIMEOUT (seconds) and TENV_HTTP_RETRIES say; what makes no sense counts as not said."""
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
    """What a user's settings say of connections.

    Attributes:
        authorities: By whose signature servers are verified.
        patience: How long a server is waited for.
        proxies: Proxies by scheme or ``all``; those of the usual variables win.
        no_proxy: Hosts that are asked without a proxy, separated by commas, beside those of NO_PROXY.
        insecure: Hosts, with or without a port, whose certificate is not verified.
        logins: Users and passwords by origin (see `origin_of`), sent without being asked for.
        ask: Return a user and a password for a URL that was refused without; None if there are none.
    """

    authorities: Authorities = field(default_factory=Authorities)
    patience: Patience = field(default_factory=Patience)
    proxies: Mapping[str, str] = field(default_factory=dict)
    no_proxy: str = ""
    insecure: tuple[str, ...] = ()
    logins: Mapping[str, Login] = field(default_factory=dict, repr=False)
    ask: Callable[[str], Login | None] = lambda _url: None


def shown(url: str) -> str:
    """Return an address without what must not be in a message: a user and a password, a query that may hold a key."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that can't be read"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def origin_of(url: str) -> str:
    """Return the scheme, host and port that credentials are for, such as ``https://host:443``."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{parts.port or _PORTS.get(parts.scheme, 0)}"
