"""Channels that are silent or drip, and channels that ask who is there."""

import base64
import contextlib
import hashlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rattler import Client, package_streaming
from rattler.package_streaming import download_to_writer

from tenv.core.carried_files import CarriedFiles
from tenv.core.certificates import Authorities
from tenv.core.errors import CertificateError, NetworkError
from tenv.core.names import Digest
from tenv.rattler_api import fetch as downloads
from tenv.rattler_api.fetch import fetch
from tenv.rattler_api.network import Network, connection_fault
from tenv.rattler_api.records import Record
from tests.support.rarely import first_fast

DATA = b"a package" * 1000


def record(port: int, scheme: str = "http", number: int = 1) -> Record:
    class One:
        url = f"{scheme}://127.0.0.1:{port}/linux-64/a-{number}-0.conda"
        sha256 = hashlib.sha256(DATA).hexdigest()
        md5 = ""
        name = "a"
        size = len(DATA)

    return One()  # type: ignore[return-value]


@pytest.fixture(autouse=True)
def _impatient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "packages"))
    monkeypatch.setattr(downloads, "_PAUSE", 0.01)


def _talk(connection: socket.socket, *, drips: bool) -> None:
    with connection, contextlib.suppress(OSError):
        connection.settimeout(20)
        connection.recv(4096)
        if drips:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while drips:
            time.sleep(0.1)
            connection.sendall(b"x")
        connection.recv(4096)  # until the client hangs up


def test_the_reason_why_no_request_is_sent_is_asked_once_for_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, tried = list[str](), list[str]()

    def find(text: str, trusted: Authorities) -> CertificateError | NetworkError | None:
        asked.append(text)
        return connection_fault(text, trusted)

    async def bring(client: Client, url: str, sink: object) -> None:
        tried.append(url)
        await download_to_writer(client, url, sink)

    monkeypatch.setattr(downloads, "connection_fault", find)
    monkeypatch.setattr(package_streaming, "download_to_writer", bring)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(NetworkError, match="Connection refused"):  # the words that rattler does not report
        fetch([record(port, "https", number) for number in range(20)], Network(), lambda *_: None)
    assert len(asked) == 1
    assert max(Counter(tried).values()) == 2  # and not the four of a server that answers now and then


@pytest.mark.timeout(120)
@pytest.mark.parametrize("drips", first_fast([True, False]))
def test_a_server_that_is_silent_or_drips_is_given_up(drips: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENV_HTTP_TIMEOUT", "0.2")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                talks.append(threading.Thread(target=_talk, args=(connection,), kwargs={"drips": drips}, daemon=True))
                talks[-1].start()

        talks: list[threading.Thread] = []
        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(NetworkError, match=r"the server sent less than 1 KiB a second for 0\.2 s"):
            fetch([record(server.getsockname()[1])], Network(), lambda *_: None)
        server.shutdown(socket.SHUT_RDWR)
        for talk in talks:
            talk.join(30)


class _Asking(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = f"Basic {base64.b64encode(b'me:secret').decode()}"
        if self.headers.get("Authorization") != known:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(DATA)))
        self.end_headers()
        self.wfile.write(DATA)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def asking() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Asking) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.parametrize("store", ["netrc", "none", "rattler"])
def test_a_login_is_looked_up_when_it_is_used(
    store: str, asking: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if store == "rattler":
        login = {"BasicHTTP": {"username": "me", "password": "secret"}}
        (tmp_path / "logins.json").write_text(json.dumps({"127.0.0.1": login}))
        monkeypatch.setenv("RATTLER_AUTH_FILE", str(tmp_path / "logins.json"))
    if store == "netrc":
        (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
        (tmp_path / "netrc").chmod(0o600)
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    if store == "none":
        with pytest.raises(NetworkError, match="401"):
            fetch([record(asking)], Network(), lambda *_: None)
        return
    found = fetch([record(asking)], Network(), lambda *_: None)
    assert [path.read_bytes() for path in found.values()] == [DATA]


def test_a_file_that_another_process_installs_and_removes_meanwhile_is_fetched_again(
    asking: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    taken: list[Path] = []

    def read(_: Record, path: Path) -> None:
        if not taken:
            path.unlink()
        taken.append(path)
        assert path.read_bytes() == DATA

    found = fetch([record(asking)], Network(), lambda *_: None, read)
    assert taken == [*found.values()] * 2


def test_two_commands_of_one_number_write_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of containers that share a cache have equal numbers, and one would pass on what the other begins."""
    parts: list[Path] = []
    copy = downloads._copy

    def noted(source: Path, part: Path, digest: Digest) -> None:
        parts.append(part)
        copy(source, part, digest)

    monkeypatch.setattr(downloads, "_copy", noted)
    carried = CarriedFiles(tmp_path)
    carried.files.mkdir()
    (carried.files / hashlib.sha256(DATA).hexdigest()).write_bytes(DATA)
    for _ in range(2):
        (path,) = fetch([record(9)], Network(carried=carried), lambda *_: None).values()
        path.unlink()
    assert len({*parts}) == 2
