"""HTTP for archives, sizes and metadata: one session with the user's certificates, proxies and credentials.

No other module imports `requests`. uv queries package indexes and rattler queries conda channels; both get the same
authorities from `tenv.core.certificates`.
"""

import functools
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib import request
from urllib.parse import urlsplit

from tenv import __version__
from tenv.core.errors import CancelledError, NetworkError
from tenv.core.http_settings import HttpSettings, Login, Patience, origin_of, shown

if TYPE_CHECKING:
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.util.retry import Retry

LATER = (408, 425, 429, 500, 502, 503, 504)
"""Statuses of transient server errors, which are retried."""

_CHUNK = 1 << 20  # of smaller pieces, threads wait for each other more often: 128 KiB takes a fifth more CPU time
_CONNECTIONS = 8
_REDIRECTS = 10
_REFUSED = (401, 403)
PROXY_ASKS = 407
PROXY_LOGIN = "put `USER:PASSWORD@` before the host of the proxy in HTTPS_PROXY and HTTP_PROXY"
PROXY_WORDS = re.compile(r"\b407 Proxy|proxy authorization required|\b(?:response|error:) 407\b", re.IGNORECASE)
"""The words of uv, rattler and git about a proxy that wants a login: hyper's, and those of http and curl."""
_TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})\b")
"""http.client's words for an answer to CONNECT that is no success."""


class Interrupted(Exception):  # noqa: N818 (not an error: the next attempt resumes here)
    """An answer ended early."""


class Unanswered(Exception):  # noqa: N818 (the caller decides)
    """No attempt got an answer.

    Attributes:
        hint: A remedy; empty if none is known.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint


def _stop() -> CancelledError:
    return CancelledError("interrupted", hint="run the same command again to resume")


class HttpResponse:
    """The answer of a server; a context manager that releases the connection.

    Attributes:
        status: The HTTP status.
        ok: Whether the status means success.
        headers: The headers, with case-insensitive names.
        url: The address after redirects.
    """

    def __init__(self, answer: "requests.Response", stopped: threading.Event) -> None:
        self.status = answer.status_code
        self.ok = answer.ok
        self.headers: Mapping[str, str] = answer.headers
        self.url = answer.url
        self._answer = answer
        self._stopped = stopped

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._answer.close()

    def pieces(self, *, decoded: bool = False) -> Iterator[bytes]:
        """Yield the bytes of the answer as sent, or without the transfer's compression.

        Raises:
            Interrupted: The connection broke.
            CancelledError: The command was stopped.
        """
        from urllib3.exceptions import HTTPError

        try:
            while piece := self._answer.raw.read1(_CHUNK, decode_content=decoded):
                if self._stopped.is_set():
                    raise _stop()
                yield piece
        except (HTTPError, OSError) as error:  # the errors of requests are OSErrors
            raise Interrupted(_reason(error)) from error

    def content(self) -> bytes:
        """Return all bytes of a small answer; raises like `pieces`."""
        return b"".join(self.pieces(decoded=True))


@dataclass(slots=True)
class Http:
    """Requests over HTTP; several threads may share it."""

    settings: HttpSettings = field(default_factory=HttpSettings)
    """The user's settings."""
    stopped: threading.Event = field(default_factory=threading.Event)
    """Set to end all requests."""
    _opening: threading.Lock = field(default_factory=threading.Lock)
    _session: "requests.Session | None" = None

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
        """Request a file. Its content is not read yet when this returns.

        Raises:
            Unanswered: No attempt gets an answer.
            NetworkError: The address is invalid or redirects to a forbidden one.
            CertificateError: The server's certificate is not trusted.
        """
        return self._ask("GET", url, headers or {})

    def head(self, url: str) -> HttpResponse:
        """Request only the headers of a file; raises like `get`."""
        return self._ask("HEAD", url, {})

    def _ask(self, method: str, url: str, headers: Mapping[str, str]) -> HttpResponse:
        import requests  # late: 82 ms

        if self.stopped.is_set():
            raise _stop()
        with self._opening:
            session = self._session = self._session or _open_session(self.settings, self.stopped)
        patience = self.settings.patience
        try:
            answer = session.request(
                method,
                url,
                # Identity: a server that compresses a .tar.gz again sends other bytes than the hashed ones.
                headers={"Accept-Encoding": "identity", **headers},
                stream=True,
                timeout=(patience.connect, patience.read),
                allow_redirects=True,
            )
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, requests.TooManyRedirects) as error:
            raise NetworkError(f"{shown(url)}: {error}") from error
        except (requests.RequestException, OSError, ValueError) as error:
            asked = error.request if isinstance(error, requests.RequestException) else None
            address = str(asked.url) if asked is not None else url
            if refusal := self.settings.authorities.refusal(_innermost(error), address):
                raise refusal from error
            if refused := _TUNNEL.search(_innermost(error)):
                status = int(refused[1])
                hint = PROXY_LOGIN if status == PROXY_ASKS else ""
                raise Unanswered(f"the proxy responded with status {status}", hint) from error
            raise Unanswered(_reason(error)) from error
        return HttpResponse(answer, self.stopped)


def _open_session(settings: HttpSettings, stopped: threading.Event) -> "requests.Session":
    """Return a session with the user's settings; of the environment, it uses only proxies.

    Redirects never go from https to http, and credentials are sent only to their own origin.
    """
    import requests  # late: 82 ms

    logins = _Logins(settings)
    usual = _adapter(settings, stopped)
    insecure = _adapter(settings, stopped, verified=False) if settings.insecure else usual

    class Session(requests.Session):
        """A session that uses `settings` where requests uses the environment."""

        def get_redirect_target(self, resp: requests.Response) -> str | None:
            target = super().get_redirect_target(resp)
            if target and resp.url.startswith("https:") and target.lower().startswith("http:"):
                raise requests.exceptions.InvalidURL(f"redirects to {shown(target)}, which is not encrypted")
            return target

        def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
            super().rebuild_auth(prepared_request, response)  # type: ignore[no-untyped-call]
            if "Authorization" not in prepared_request.headers:
                logins.sign(prepared_request)

        def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> Any:
            proxies = _proxies(settings, str(url))
            return super().merge_environment_settings(url, proxies, stream, verify, cert)

        def rebuild_proxies(self, prepared_request: requests.PreparedRequest, proxies: Any) -> Any:
            proxies = _proxies(settings, str(prepared_request.url))
            return super().rebuild_proxies(prepared_request, proxies)  # type: ignore[no-untyped-call]

        def get_adapter(self, url: Any) -> Any:
            return insecure if _is_insecure(settings, str(url)) else super().get_adapter(url)

    session = Session()
    session.trust_env = False
    session.auth = logins.sign
    session.hooks["response"].append(logins.answer_to)
    session.headers["User-Agent"] = f"tenv/{__version__}"
    session.max_redirects = _REDIRECTS
    session.mount("https://", usual)
    session.mount("http://", usual)
    return session


class _Logins:
    """The credentials of servers."""

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self._answers: dict[str, Login | None] = {}
        self._asking = threading.Lock()

    def sign(self, request: "requests.PreparedRequest") -> "requests.PreparedRequest":
        """Add known credentials: those in the URL, of an index, or in the netrc file."""
        from requests.auth import HTTPBasicAuth
        from requests.utils import get_auth_from_url, get_netrc_auth

        url = str(request.url)
        origin = origin_of(url)
        given = get_auth_from_url(url)
        found = given if given[1] else self._answers.get(origin) or self._settings.logins.get(origin)
        if login := found or get_netrc_auth(url):
            HTTPBasicAuth(*login)(request)
        return request

    def answer_to(self, answer: "requests.Response", **how: Any) -> "requests.Response":
        """Repeat a rejected request with credentials from a keyring or a credential helper."""
        from requests.auth import HTTPBasicAuth

        if answer.status_code not in _REFUSED:
            return answer
        origin = origin_of(answer.url)
        with self._asking:
            if origin not in self._answers:
                self._answers[origin] = self._settings.ask(answer.url)
        if (login := self._answers[origin]) is None:
            return answer
        request = HTTPBasicAuth(*login)(answer.request.copy())
        if request.headers["Authorization"] == answer.request.headers.get("Authorization"):
            return answer
        answer.close()
        again: requests.Response = answer.connection.send(request, **how)
        again.history.append(answer)
        return again


def _proxies(settings: HttpSettings, url: str) -> dict[str, str]:
    """Return the proxies for a URL by scheme: the environment's, else those in the user's settings."""
    from requests.utils import should_bypass_proxies

    host = urlsplit(url).netloc.rpartition("@")[2]
    bypassed = request.proxy_bypass_environment(host, {"no": settings.no_proxy})  # type: ignore[attr-defined]
    if bypassed or should_bypass_proxies(url, None):
        return {}
    return {**settings.proxies, **request.getproxies()}


def _is_insecure(settings: HttpSettings, url: str) -> bool:
    """Return whether the user's settings disable verification for a URL's host."""
    parts = urlsplit(url)
    return not {parts.hostname, parts.netloc.rpartition("@")[2]}.isdisjoint(settings.insecure)


def _adapter(settings: HttpSettings, stopped: threading.Event, *, verified: bool = True) -> "HTTPAdapter":
    """Return the adapter for connections: it uses the user's authorities and retries transient failures."""
    import ssl

    import urllib3
    from requests.adapters import HTTPAdapter

    making = threading.Lock()

    @functools.cache
    def make() -> ssl.SSLContext:
        made = settings.authorities.context()
        if not verified:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # the user's settings say so
            made.check_hostname = False
            made.verify_mode = ssl.CERT_NONE
        return made

    def context() -> ssl.SSLContext:
        with making:  # threads that come first together would each make one, and share no connections
            return make()

    class Adapter(HTTPAdapter):
        """Verifies servers only by `context`, which is created on the first connection: it takes 30 ms."""

        def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
            return super().proxy_manager_for(proxy, **kwargs, ssl_context=context())

        def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:
            host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
            if host["scheme"] != "https":
                return host, {}
            return host, {"cert_reqs": "CERT_REQUIRED" if verified else "CERT_NONE", "ssl_context": context()}

        def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
            """Add nothing to `context`."""

    return Adapter(pool_maxsize=_CONNECTIONS, max_retries=_retry(settings.patience, stopped))


def _retry(patience: Patience, stopped: threading.Event) -> "Retry":
    from urllib3.util.retry import Retry

    class Patient(Retry):
        """Retries that a stop ends and a server can't prolong."""

        def increment(self, method: Any = None, url: Any = None, response: Any = None, *more: Any, **named: Any) -> Any:
            if response is not None:
                response.close()  # its body would be read to the end, however slow it is
            return super().increment(method, url, response, *more, **named)

        def sleep(self, response: Any = None) -> None:
            pause = patience.pause * 2 ** (len(self.history) - 1)
            asked = (self.get_retry_after(response) if response is not None else 0) or 0
            if stopped.wait(min(max(pause, asked), patience.window)):
                raise _stop()

    return Patient(patience.attempts - 1, other=0, status_forcelist=LATER, raise_on_status=False)


def _reason(error: BaseException) -> str:
    """Return a short reason: libraries put the whole chain of their objects into a message."""
    import requests

    if "IncompleteRead" in f"{type(error).__name__} {error}":
        return "the connection ended early"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy does not answer"
    if isinstance(error, requests.exceptions.SSLError):
        return f"the server's certificate is not trusted ({_innermost(error)})"
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return "connecting timed out"
    if isinstance(error, requests.exceptions.Timeout) or "timed out" in str(error).lower():
        return "the answer timed out"
    return _innermost(error)


def _innermost(error: BaseException) -> str:
    seen: BaseException = error
    while (inner := seen.__cause__ or seen.__context__ or getattr(seen, "reason", None)) and isinstance(
        inner, BaseException
    ):
        seen = inner
    if isinstance(seen, OSError) and seen.strerror:
        return seen.strerror
    return str(seen).splitlines()[0] if str(seen) else type(seen).__name__
