"""What a wheel says of itself, out of a wheel on a server that has nothing beside it."""

import io
import re
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tenv.core.http import Http
from tenv.sources.wheels.metadata import from_file, from_index

METADATA = b"Metadata-Version: 2.1\nName: big\nVersion: 1.0\nRequires-Dist: other>=2\n"


def make(size: int) -> bytes:
    """Return a wheel whose other content has a number of bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("big/data.bin", bytes(size))
        file.writestr("big-1.0.dist-info/METADATA", METADATA)
    return made.getvalue()


class Server(ThreadingHTTPServer):
    """Serves one wheel, in ranges or not."""

    daemon_threads = True
    block_on_close = False
    data = b""
    ranges = True
    from_end = True
    sent = asked = connections = 0

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that went away."""


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_GET(self) -> None:
        found = re.fullmatch(r"bytes=(\d*)-(\d+)", self.headers.get("Range", "")) if self.server.ranges else None
        size, data = len(self.server.data), self.server.data
        if found and not found[1] and not self.server.from_end:
            found = None
        if found:
            start = int(found[1]) if found[1] else max(0, size - int(found[2]))
            data = data[start : int(found[2]) + 1] if found[1] else data[start:]
        if self.path.endswith(".metadata"):
            self.send_response(404)
            data = b"there is none"
        elif found:
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{start + len(data) - 1}/{size}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.server.asked += 1
        for start in range(0, len(data), 10_000):
            self.server.sent += self.wfile.write(data[start : start + 10_000])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class calls it so)
        """Write nothing to standard error."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        made.shutdown()


def ask(server: Server) -> bytes | None:
    return from_index(Http(), f"http://127.0.0.1:{server.server_port}/big-1.0-py3-none-any.whl")


def test_of_a_large_wheel_only_its_end_is_fetched(server: Server) -> None:
    server.data = make(20_000_000)
    assert ask(server) == METADATA
    assert server.sent < 500_000
    assert server.asked == 2  # for the file beside it, and for the end
    assert server.connections == 1


def test_a_server_without_ranges_from_the_end_sends_others(server: Server) -> None:
    server.from_end, server.data = False, make(40_000_000)
    assert ask(server) == METADATA
    assert server.sent < 20_000_000


@pytest.mark.parametrize("size", [1000, 20_000_000])
def test_a_server_without_ranges_sends_a_wheel_whole(server: Server, size: int) -> None:
    """Python's own server is one; without the requirements of one wheel there is no lock."""
    server.ranges, server.data = False, make(size)
    assert ask(server) == METADATA


@pytest.mark.parametrize("data", [b"", b"no wheel", make(10)[:100]], ids=["empty", "text", "cut short"])
def test_of_what_is_no_wheel_nothing_is_known(server: Server, data: bytes, tmp_path: Path) -> None:
    server.data = data
    assert ask(server) is None
    file = tmp_path / "x.whl"
    file.write_bytes(data)
    assert from_file(file.as_uri()) is None


def test_a_damaged_member_that_is_packed_by_lzma_is_nothing_known(server: Server, tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_LZMA) as wheel:
        wheel.writestr("x-1.dist-info/METADATA", METADATA * 100)
    data = bytearray(stream.getvalue())
    data[60:80] = b"\xff" * 20
    server.data = bytes(data)
    assert ask(server) is None
    file = tmp_path / "x.whl"
    file.write_bytes(data)
    assert from_file(file.as_uri()) is None


def test_a_wheel_of_this_machine_is_read_where_it_lies(tmp_path: Path) -> None:
    file = tmp_path / "with space.whl"
    file.write_bytes(make(10))
    assert from_file(file.as_uri()) == METADATA
