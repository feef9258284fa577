"""Small wheels, and a package index that serves them and can fail on request.

Nothing here is random: the same call makes the same bytes on every machine.
"""

import base64
import contextlib
import hashlib
import io
import re
import socket
import ssl
import sys
import threading
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import quote, unquote

__all__ = [
    "MINORS",
    "Answers",
    "Fault",
    "Index",
    "Service",
    "change_byte",
    "make_native",
    "make_nvidia",
    "make_wheel",
    "noise",
    "unpack",
]

MINORS = ("3.11", "3.12") if sys.version_info < (3, 13) else ("3.13", "3.14")
"""Two Python minors that the fake targets are for; the one that runs the tests is among them."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_FOREVER = 60.0


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    *,
    requires: Iterable[str] = (),
    extras: Mapping[str, Iterable[str]] | None = None,
    files: Mapping[str, str | bytes] | None = None,
    tag: str = "py3-none-any",
) -> Path:
    """Write a valid wheel and return its path.

    Args:
        folder: Where to.
        name: The distribution's name, with underscores.
        version: Its version.
        requires: What it requires, as PEP 508 lines.
        extras: What each extra requires.
        files: Its files; one that begins with ``#!`` is executable. A module that says its version when left out.
        tag: The tag of Python, ABI and platform.
    """
    info = f"{name}-{version}.dist-info"
    own = {f"{name}.py": f"VERSION = {version!r}\n"} if files is None else files
    members = {path: _bytes(data) for path, data in own.items()}
    members[f"{info}/METADATA"] = _metadata(name, version, requires, extras or {}).encode()
    members[f"{info}/WHEEL"] = _wheel_text(tag).encode()
    members[f"{info}/RECORD"] = _record(members, f"{info}/RECORD").encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for member, data in members.items():
            entry = zipfile.ZipInfo(member, _EPOCH)
            entry.external_attr = (0o100755 if data.startswith(b"#!") else 0o100644) << 16
            archive.writestr(entry, data)
    return path


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data


def _metadata(name: str, version: str, requires: Iterable[str], extras: Mapping[str, Iterable[str]]) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {name.replace('_', '-')}", f"Version: {version}"]
    lines += [f"Requires-Dist: {line}" for line in requires]
    for extra, needs in extras.items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {line}; extra == "{extra}"' for line in needs)]
    return "\n".join(lines) + "\n"


def _wheel_text(tag: str) -> str:
    python, abi, platforms = tag.split("-")
    tags = [f"Tag: {python}-{abi}-{platform}" for platform in platforms.split(".")]
    return "\n".join(["Wheel-Version: 1.0", "Generator: fakes", f"Root-Is-Purelib: {abi == 'none'}", *tags, ""])


def _record(members: Mapping[str, bytes], own: str) -> str:
    def row(path: str, data: bytes) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        return f"{path},sha256={digest},{len(data)}\n"

    return "".join(row(path, data) for path, data in members.items()) + f"{own},,\n"


def make_native(folder: Path, name: str, version: str, requires: Iterable[str] = ()) -> list[Path]:
    """Write a wheel for each of MINORS and each platform that a manifest may name."""
    platforms = ("manylinux_2_17_x86_64.manylinux2014_x86_64", "manylinux_2_17_aarch64", "win_amd64")
    abis = [f"cp{minor.replace('.', '')}" for minor in MINORS]
    tags = [f"{abi}-{abi}-{platform}" for abi in abis for platform in platforms]
    return [
        make_wheel(folder, name, version, requires=requires, tag=tag, files={f"{name}.py": f"TAG = {tag!r}\n"})
        for tag in tags
    ]


def noise(size: int) -> bytes:
    """Return bytes that look random and do not compress."""
    return hashlib.shake_256(b"tenv").digest(size)


def change_byte(path: Path) -> None:
    """Change one byte in the middle of a file."""
    path.write_bytes(_changed(path.read_bytes()))


def _changed(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def unpack(wheel: Path, site: Path) -> None:
    """Put a wheel's files where an installer would."""
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = Path(archive.extract(entry, site))
            path.chmod(entry.external_attr >> 16 & 0o777)


def make_nvidia(folder: Path) -> list[Path]:
    """Write wheels laid out as NVIDIA's of CUDA 13 are: a toolkit in pieces, with two roots that share folders."""
    root = "nvidia/cu13"
    runtime: dict[str, str | bytes] = {
        f"{root}/include/cuda.h": "#define cuMemAlloc cuMemAlloc_v2\n"
        "CUresult CUDAAPI cuInit(unsigned int Flags);\nCUresult CUDAAPI cuMemAlloc(void *p, int n);\n",
        f"{root}/include/cuda_runtime_api.h": "#define CUDART_VERSION 13000\n",
        f"{root}/include/nvtx3/nvToolsExt.h": "/* from the runtime */\n",
        f"{root}/lib/libcudart.so.13": b"\x7fELF runtime",
        f"{root}/lib/libcudart_static.a": b"!<arch>\n",
    }
    compiler: dict[str, str | bytes] = {
        f"{root}/bin/nvcc": "#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.48'\n",
        f"{root}/bin/nvcc.profile": "TOP = $(_HERE_)/..\n",
        f"{root}/nvvm/bin/cicc": "#!/bin/sh\n",
        f"{root}/include/__init__.py": "",
    }
    cudnn: dict[str, str | bytes] = {
        "nvidia/cudnn/include/cudnn.h": "#define CUDNN_MAJOR 9\n",
        "nvidia/cudnn/include/nvtx3/own.h": "/* from cuDNN */\n",
        "nvidia/cudnn/lib/libcudnn.so.9": b"\x7fELF cudnn",
        "nvidia/cudnn/lib/libcudnn_ops.so.9": b"\x7fELF cudnn ops",
        "nvidia/cudnn/__init__.py": "",
    }
    return [
        make_wheel(folder, "nvidia_cuda_runtime", "13.0.48", files=runtime),
        make_wheel(folder, "nvidia_cuda_nvcc", "13.0.48", files=compiler),
        make_wheel(folder, "nvidia_cudnn_cu13", "9.12.0.46", files=cudnn),
        make_wheel(folder, "cuda_toolkit", "13.0.0.0", files={}),
    ]


class Fault(StrEnum):
    """A way in which an index can fail."""

    SILENT = "takes the request and never answers"
    ERROR = "answers 500"
    FORBIDDEN = "answers 403"
    CUT = "ends the connection in the middle of a file"
    CHANGED = "serves the file with one byte changed"
    SLOW = "sends a few bytes at a time"


class Service:
    """Something served on a port of 127.0.0.1 while the body runs.

    Attributes:
        url: Its address.
        stopping: Set when it ends, so that no answer that is under way outlives it.
    """

    def __init__(self, handler: type[BaseHTTPRequestHandler], port: int = 0) -> None:
        """Bind a port; 0 for a free one."""
        self.stopping = threading.Event()
        self._server = _Server(("127.0.0.1", port), handler)
        self._server.service, self._server.ended = self, threading.Event()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def encrypt(self, context: ssl.SSLContext) -> None:
        """Serve over TLS; call it before the body begins."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = self.url.replace("http:", "https:")

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.answer, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the port: from now on connections are refused."""
        if not self.stopping.is_set():
            self.stopping.set()
            self._server.end()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    service: Service
    ended: threading.Event

    def answer(self) -> None:
        """Answer requests to the end; `serve_forever` polls for it, which costs each test some milliseconds."""
        while not self.service.stopping.is_set():
            with contextlib.suppress(OSError):  # of a client that went away
                self.process_request(*self.get_request())
        self.ended.set()

    def end(self) -> None:
        """Close the port once no connection is taken any more."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.server_port)):
            self.ended.wait()  # the connection ends the wait for one
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that went away."""


class Answers(BaseHTTPRequestHandler):
    """What all services answer with: connections that are kept, and nothing on standard error."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body, written after its headers, waits 40 ms for their acknowledgment
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class calls it so)
        """Write nothing to standard error."""


class Index(Service):
    """A PEP 503 index of the wheels in a folder, on a port of 127.0.0.1.

    Attributes:
        folder: The wheels; what is put there later is served too.
        fault: How it fails now, or None.
        where: A pattern for the paths that fail.
        asked: Every path that was asked for.
        login: The user and the password without which nothing is served; empty for none.
        bare: Whether its pages have no digests.
        whole: Whether it has no metadata beside the files.
        caching: The `Cache-Control` of its pages; empty for none.
    """

    login = ""
    bare = False
    whole = False
    caching = ""

    def __init__(self, folder: Path, port: int = 0) -> None:
        super().__init__(_Pages, port)
        self.url += "/simple"
        self.folder = folder
        self.fault: Fault | None = None
        self.where = ""
        self.asked: list[str] = []
        self.askers: list[str] = []  # the programs that asked, in the same order

    def fail(self, fault: Fault | None, where: str = r"\.whl$") -> None:
        """Fail from now on wherever the path holds a pattern."""
        self.fault, self.where = fault, where

    @contextlib.contextmanager
    def failing(self, fault: Fault, where: str = r"\.whl$") -> Iterator[None]:
        """Fail while the body runs."""
        self.fail(fault, where)
        try:
            yield
        finally:
            self.fail(None)

    def wheels(self) -> list[Path]:
        """Return the wheels that are there now, sorted."""
        return sorted(self.folder.glob("*.whl"))

    def answer(self, path: str) -> tuple[int, bytes]:
        """Return the status and the body for a path while all is well."""
        kind, _, name = path.strip("/").partition("/")
        if kind == "simple" and name:
            files = (*self.wheels(), *sorted(self.folder.glob("*.tar.gz")))
            there = [file for file in files if _normalized(file.name.split("-")[0]) == name]
            page = _page(there, digests=not self.bare, metadata=not self.whole)
            return (200, page) if page else (404, b"no such project")
        file = self.folder / name.removesuffix(".metadata")
        if kind == "files" and file.is_file() and not (self.whole and name.endswith(".metadata")):
            return 200, _read_metadata(file) if name.endswith(".metadata") else file.read_bytes()
        return 404, b"no such file"


class _Pages(Answers):
    @property
    def index(self) -> Index:
        assert isinstance(self.server.service, Index)
        return self.server.service

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        path = unquote(self.path)
        index = self.index
        index.asked.append(path)
        index.askers.append(self.headers.get("User-Agent", ""))
        fault = index.fault if index.fault and re.search(index.where, path) else None
        expected = "Basic " + base64.b64encode(index.login.encode()).decode()
        if index.login and self.headers.get("Authorization") != expected:
            self._send(401, b"who are you?", body=body)
        elif fault is Fault.SILENT:
            index.stopping.wait(_FOREVER)
            self.close_connection = True
        elif fault in (Fault.ERROR, Fault.FORBIDDEN):
            self._send(500 if fault is Fault.ERROR else 403, b"no", body=body)
        else:
            status, data = index.answer(path)
            self._send(status, _changed(data) if fault is Fault.CHANGED else data, body=body, fault=fault)

    def _send(self, status: int, data: bytes, *, body: bool, fault: Fault | None = None) -> None:
        tag = f'"{hashlib.sha256(data).hexdigest()}"'
        if status == HTTPStatus.OK and self.headers.get("If-None-Match") == tag:
            status, data = HTTPStatus.NOT_MODIFIED, b""
        self.send_response(status)
        self.send_header("ETag", tag)
        if self.index.caching and self.path.endswith("/"):
            self.send_header("Cache-Control", self.index.caching)
        self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/octet-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body and fault is Fault.CUT:
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
        elif body and fault is Fault.SLOW:
            self._drip(data)
        elif body:
            self.wfile.write(data)

    def _drip(self, data: bytes) -> None:
        for start in range(0, len(data), 1024):
            self.wfile.write(data[start : start + 1024])
            if self.index.stopping.wait(0.05):
                return


def _page(wheels: Sequence[Path], *, digests: bool, metadata: bool) -> bytes:
    rows = []
    for wheel in wheels:
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        fragment = f"#sha256={digest}" if digests else ""
        beside = ' data-core-metadata="true"' if metadata and wheel.suffix == ".whl" else ""
        link = f'href="../../files/{quote(wheel.name)}{fragment}"{beside}'
        rows.append(f"<a {link}>{wheel.name}</a><br>")
    return ("<!DOCTYPE html><html><body>" + "\n".join(rows) + "</body></html>").encode() if rows else b""


def _read_metadata(wheel: Path) -> bytes:
    with zipfile.ZipFile(io.BytesIO(wheel.read_bytes())) as archive:
        return archive.read("-".join(wheel.name.split("-")[:2]) + ".dist-info/METADATA")


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
