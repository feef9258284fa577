"""Servers that ask who is there: one for files, and a forward proxy."""

import base64
import http.client
import select
import socket
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.support.fakes import Answers, Service

__all__ = ["Gate", "Proxy", "basic"]


def basic(login: str) -> str:
    """Return the header of a user and a password, `user:password`."""
    return f"Basic {base64.b64encode(login.encode()).decode()}"


class Gate(Service):
    """A server of files for those whose `Authorization` is the expected one.

    Attributes:
        expected: The header; empty for everybody.
        asked: Every path that was asked for, with its header.
    """

    def __init__(self, files: Path | Mapping[str, bytes | Path], expected: str = "") -> None:
        super().__init__(_Files)
        self.files = files
        self.expected = expected
        self.asked: list[tuple[str, str]] = []

    def find(self, path: str) -> bytes | None:
        """Return the content of a path; None if there is none."""
        found: bytes | Path | None
        found = self.files / path.lstrip("/") if isinstance(self.files, Path) else self.files.get(path)
        if isinstance(found, Path):
            return found.read_bytes() if found.is_file() else None
        return found


class _Files(Answers, BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        gate, given = self.server.service, self.headers.get("Authorization", "")
        assert isinstance(gate, Gate)
        path = unquote(self.path.partition("?")[0])
        gate.asked.append((path, given))
        data = gate.find(path)
        status = 401 if gate.expected and given != gate.expected else 404 if data is None else 200
        body = (data or b"") if status == 200 else b""
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="files"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


class Proxy(Service):
    """A forward proxy for http and https.

    Attributes:
        login: The user and the password that it expects, `user:password`; empty for none.
        used: The addresses that were reached through it.
        refused: How often somebody without the login came.
    """

    def __init__(self, login: str = "") -> None:
        super().__init__(_Forward)
        self.login = login
        self.used: list[str] = []
        self.refused = 0


class _Forward(Answers, BaseHTTPRequestHandler):
    def _is_known(self) -> bool:
        proxy = self.server.service
        assert isinstance(proxy, Proxy)
        if not proxy.login or self.headers.get("Proxy-Authorization") == basic(proxy.login):
            proxy.used.append(self.path)
            return True
        proxy.refused += 1
        self.send_response(407)
        self.send_header("Proxy-Authenticate", 'Basic realm="proxy"')
        self.send_header("Content-Length", "0")
        self.end_headers()
        return False

    def do_CONNECT(self) -> None:
        if not self._is_known():
            return
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port)), 20) as there:
            self.send_response(200)
            self.end_headers()
            ends = {self.connection: there, there: self.connection}
            while ready := select.select([*ends], [], [], 20)[0]:
                for end in ready:
                    data = end.recv(1 << 16)
                    if not data:
                        self.close_connection = True
                        return
                    ends[end].sendall(data)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if not self._is_known():
            return
        parts = urlsplit(self.path)
        there = http.client.HTTPConnection(parts.netloc, timeout=20)
        kept = {name: value for name, value in self.headers.items() if not name.lower().startswith("proxy-")}
        there.request(self.command, f"{parts.path}?{parts.query}" if parts.query else parts.path, headers=kept)
        answer = there.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        length = answer.getheader("Content-Length", str(len(body))) if self.command == "HEAD" else str(len(body))
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(body)
        there.close()
