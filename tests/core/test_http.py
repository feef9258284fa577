"""The one session: credentials, redirects, proxies, retries, certificates."""

import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tenv.core.certificates import Authorities
from tenv.core.errors import CancelledError, CertificateError, NetworkError
from tenv.core.http import Http, Unanswered
from tenv.core.http_settings import HttpSettings, Login, Patience, origin_of
from tests.support.authority import Authority
from tests.support.each import each
from tests.support.gates import Proxy
from tests.support.redist import Server

QUICK = Patience(connect=30, read=30, attempts=3, pause=0.01, slow=1024, window=30)
ME = "Basic bWU6c2VjcmV0"
"""The header of the user `me` with the password `secret`."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server({"/file": b"data"}) as served:
        yield served


def http(stopped: threading.Event | None = None, **settings: object) -> Http:
    return Http(replace(HttpSettings(patience=QUICK), **settings), stopped or threading.Event())  # type: ignore[arg-type]


def get(made: Http, url: str) -> bytes:
    with made.get(url) as answer:
        return answer.content()


def with_login(url: str, login: str = "me:secret") -> str:
    return url.replace("http://", f"http://{login}@")


def localhost(url: str) -> str:
    return url.replace("127.0.0.1", "localhost")


@pytest.fixture
def two_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `localhost` be asked without a proxy, as 127.0.0.1 is."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")


# Credentials


def test_a_login_in_the_url_is_sent(server: Server) -> None:
    get(http(), f"{with_login(server.url)}/file")
    assert server.headers[0]["Authorization"] == ME


def test_a_login_of_an_index_is_sent_to_its_own_origin_alone(server: Server) -> None:
    made = http(logins={origin_of(server.url): ("me", "secret")})
    with Server({"/file": b"x"}) as other:
        get(made, f"{server.url}/file")
        get(made, f"{other.url}/file")
        assert "Authorization" not in other.headers[0]
    assert server.headers[0]["Authorization"] == ME


def test_a_login_of_the_netrc_file_is_sent(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    get(http(), f"{server.url}/file")
    assert server.headers[0]["Authorization"] == ME
    get(http(), f"{with_login(server.url, 'you:other')}/file")  # what stands in the URL comes first, as in uv
    assert server.headers[1]["Authorization"] != ME


@pytest.mark.usefixtures("two_names")
@pytest.mark.parametrize("kind", ["url", "index", "keyring"])
def test_no_login_follows_a_redirect_to_another_origin(server: Server, kind: str) -> None:
    with Server() as first:
        first.redirect = ("/file", localhost(server.url))
        url = f"{with_login(first.url) if kind == 'url' else first.url}/file"
        logins = {origin_of(first.url): ("me", "secret")} if kind == "index" else {}
        ask = (lambda _: ("me", "secret")) if kind == "keyring" else (lambda _: None)
        if kind == "keyring":
            first.statuses = [401]
        assert get(http(logins=logins, ask=ask), url) == b"data"
        assert first.headers[-1]["Authorization"] == ME
    assert "Authorization" not in server.headers[0]


def test_a_login_stays_when_the_redirect_stays_on_the_server(server: Server) -> None:
    server.files["/moved/file"] = b"data"
    server.redirect = ("^/file", f"{server.url}/moved")
    get(http(), f"{with_login(server.url)}/file")
    assert [row.get("Authorization") for row in server.headers] == [ME, ME]


def test_a_refused_request_is_sent_again_with_what_a_keyring_knows_which_is_asked_once(server: Server) -> None:
    asked: list[str] = []

    def ask(url: str) -> Login:
        asked.append(url)
        return "me", "secret"

    server.statuses = [401]
    made = http(ask=ask)
    assert get(made, f"{server.url}/file") == b"data"
    assert get(made, f"{server.url}/file") == b"data"
    assert [row.get("Authorization") for row in server.headers] == [None, ME, ME]
    assert asked == [f"{server.url}/file"]


def test_a_login_that_was_refused_is_not_sent_twice(server: Server) -> None:
    server.statuses = [401, 401, 401]
    made = http(ask=lambda _: ("me", "secret"))
    with made.get(f"{server.url}/file") as answer:
        assert answer.status == 401
    assert len(server.asked) == 2


@each(
    "url, origin",
    [
        ("https://h/a", "https://h:443"),
        ("http://me:x@H/a", "http://h:80"),
        ("https://h:8443", "https://h:8443"),
        ("https://[::1]:8/", "https://::1:8"),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: str) -> None:
    assert origin_of(url) == origin


# Proxies


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away the variables that lead to a proxy."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name)
        monkeypatch.delenv(name.lower())


@pytest.mark.usefixtures("no_variables")
def test_a_proxy_of_the_settings_is_used_but_not_for_the_hosts_that_they_leave_out(server: Server) -> None:
    proxied = http(proxies={"all": server.url})
    server.files["http://elsewhere.example/file"] = b"by way of the proxy"
    assert get(proxied, "http://elsewhere.example/file") == b"by way of the proxy"
    with Server({"/file": b"straight"}) as other:
        host = urlsplit(other.url).netloc
        assert get(http(proxies={"all": server.url}, no_proxy=host), f"{other.url}/file") == b"straight"


@pytest.mark.usefixtures("no_variables")
def test_the_usual_variables_win_over_the_settings(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.files["http://elsewhere.example/file"] = b"by way of the proxy"
    monkeypatch.setenv("http_proxy", server.url)
    assert get(http(proxies={"http": "http://127.0.0.1:9"}), "http://elsewhere.example/file") == b"by way of the proxy"
    monkeypatch.setenv("no_proxy", "elsewhere.example")
    with pytest.raises((Unanswered, AssertionError)):  # asked straight, it does not exist
        get(http(), "http://elsewhere.example/file")


@pytest.mark.usefixtures("no_variables")
def test_a_proxy_that_asks_for_a_login_is_asked_once_and_named() -> None:
    with Proxy("me:right") as proxy:
        made = http(proxies={"all": proxy.url.replace("://", "://me:wrong@")})
        with pytest.raises(Unanswered, match=r"^the proxy responded with status 407$") as caught:
            get(made, "https://elsewhere.example/file")
        assert "USER:PASSWORD" in caught.value.hint
        assert proxy.refused == 1
    with pytest.raises(Unanswered, match=r"^the proxy does not answer$") as caught:
        get(made, "https://elsewhere.example/file")
    assert caught.value.hint == ""


# Retries


def test_a_server_in_trouble_is_asked_again_as_often_as_patience_says(server: Server) -> None:
    server.statuses = [503, 429]
    assert get(http(), f"{server.url}/file") == b"data"
    server.statuses = [503] * 9
    with http().get(f"{server.url}/file") as answer:
        assert answer.status == 503
    assert len(server.asked) == 6


class Waits(threading.Event):
    """A stop that never comes, and that says for how long it was waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        return False


def test_a_server_can_not_draw_a_retry_out(server: Server) -> None:
    server.statuses, server.retry_after = [503], "3600"
    waits = Waits()
    assert get(http(waits, patience=replace(QUICK, window=0.2)), f"{server.url}/file") == b"data"
    assert waits.seconds == [0.2]


def test_a_stop_ends_the_wait_between_two_requests(server: Server) -> None:
    server.statuses = [503] * 9
    made = http(patience=replace(QUICK, pause=60, window=60))
    threading.Timer(0.2, made.stopped.set).start()
    with pytest.raises(CancelledError):
        made.get(f"{server.url}/file")
    with pytest.raises(CancelledError):
        made.get(f"{server.url}/file")


def test_who_asks_says_so(server: Server) -> None:
    get(http(), f"{server.url}/file")
    assert server.headers[0]["User-Agent"].startswith("tenv/")


def test_an_address_that_can_not_be_asked_is_an_error(server: Server) -> None:
    for url in ("http://", "ftp://h/file", "http://[/file"):
        with pytest.raises((NetworkError, Unanswered)):
            http().get(url)


# Certificates


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def secure(authority: Authority) -> Iterator[Server]:
    made = Server({"/file": b"data"})
    made.encrypt(authority.context())
    with made:
        yield made


def test_a_refused_certificate_is_not_asked_for_again(secure: Server) -> None:
    waits = Waits()
    with pytest.raises(CertificateError):
        http(waits).get(f"{secure.url}/file")
    assert waits.seconds == []


def test_of_a_host_that_the_user_calls_insecure_no_certificate_is_verified(secure: Server) -> None:
    for host in ("127.0.0.1", urlsplit(secure.url).netloc):
        assert get(http(insecure=(host,)), f"{secure.url}/file") == b"data"
    for host in ("127.0.0.2", "127.0.0.1:1"):
        with pytest.raises(CertificateError):
            http(insecure=(host,)).get(f"{secure.url}/file")


def test_a_named_authority_stands_in_place_of_the_usual_ones(
    secure: Server, authority: Authority, tmp_path: Path
) -> None:
    assert get(http(authorities=Authorities("X", files=(authority.file,))), f"{secure.url}/file") == b"data"
    usual = len(Authorities().context().get_ca_certs())
    assert usual > 50
    assert len(Authorities("X", files=(authority.file,)).context().get_ca_certs()) == 1
    assert len(Authorities("X", files=(authority.file,), beside=True).context().get_ca_certs()) == usual + 1


def test_threads_that_come_first_together_share_one_context(
    secure: Server, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A context of its own for each would be a pool of connections of its own, too."""
    made, make = [], Authorities.context

    def slowly(self: Authorities) -> ssl.SSLContext:
        made.append(self)
        time.sleep(0.05)
        return make(self)

    monkeypatch.setattr(Authorities, "context", slowly)
    shared, together = http(authorities=Authorities("X", files=(authority.file,))), threading.Barrier(6)

    def ask(_: int) -> bytes:
        together.wait()
        return get(shared, f"{secure.url}/file")

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(ask, range(6))) == {b"data"}
    assert len(made) == 1


def test_a_redirect_from_https_to_http_is_not_followed(secure: Server, authority: Authority, server: Server) -> None:
    secure.redirect = ("/file", with_login(server.url))
    with pytest.raises(NetworkError, match=r"redirects to http://127\.0\.0\.1:\d+/file, which is not encrypted"):
        http(authorities=Authorities("X", files=(authority.file,))).get(f"{secure.url}/file")
    assert server.asked == []


def test_a_client_shows_its_own_certificate(authority: Authority, tmp_path: Path) -> None:
    served = Server({"/file": b"data"})
    served.encrypt(authority.context(clients=True))
    with served:
        known = Authorities("X", files=(authority.file,), client=authority.client(tmp_path))
        assert get(http(authorities=known), f"{served.url}/file") == b"data"
        with pytest.raises((Unanswered, NetworkError)):
            get(http(authorities=replace(known, client=None)), f"{served.url}/file")
