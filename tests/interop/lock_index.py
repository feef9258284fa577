"""An index that says it has the wheels of somebody's lock: their names, hashes and metadata, not their bytes."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import unquote

from tenv.core.names import normalize

__all__ = ["LockIndex", "Release"]


@dataclass(frozen=True)
class Release:
    """One wheel of a lock.

    Attributes:
        name: The package.
        version: Its version.
        file: The wheel's file name.
        sha256: Its digest.
        requires_dist: What it requires.
        requires_python: The Pythons that it is for.
    """

    name: str
    version: str
    file: str
    sha256: str
    requires_dist: tuple[str, ...] = ()
    requires_python: str = ""

    def metadata(self) -> str:
        """Return its METADATA."""
        lines = ["Metadata-Version: 2.1", f"Name: {self.name}", f"Version: {self.version}"]
        lines += [f"Requires-Python: {self.requires_python}"] if self.requires_python else []
        return "\n".join([*lines, *(f"Requires-Dist: {line}" for line in self.requires_dist)]) + "\n"


class LockIndex(ThreadingHTTPServer):
    """The index, on a free port of 127.0.0.1."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, releases: Iterable[Release]) -> None:
        self.by_name: dict[str, list[Release]] = {}
        self.by_digest: dict[str, Release] = {}
        for release in releases:
            self.by_name.setdefault(normalize(release.name), []).append(release)
            self.by_digest[release.sha256] = release
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/simple"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that went away."""

    def answer(self, path: str) -> bytes | None:
        """Return what there is at a path."""
        kind, _, rest = path.strip("/").partition("/")
        if kind == "simple" and (found := self.by_name.get(normalize(rest))):
            return "".join(map(_link, found)).encode()
        digest = rest.partition("/")[0]
        if kind == "files" and path.endswith(".metadata") and digest in self.by_digest:
            return self.by_digest[digest].metadata().encode()
        return None


def _link(release: Release) -> str:
    address = f"/files/{release.sha256}/{release.file.replace('+', '%2B')}#sha256={release.sha256}"
    return f'<a href="{address}" data-core-metadata="true">{release.file}</a>'


class _Handler(BaseHTTPRequestHandler):
    server: LockIndex
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        data = self.server.answer(unquote(self.path))
        self.send_response(404 if data is None else 200)
        self.send_header("Content-Type", "text/html" if self.path.startswith("/simple") else "text/plain")
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        self.wfile.write(data or b"")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class calls it so)
        """Write nothing to standard error."""
