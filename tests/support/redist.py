"""A server with the layout of NVIDIA's redist, and archives of every kind, honest and hostile.

The server listens on 127.0.0.1 and can fail on request; nothing here is random.
"""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import re
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.support.fakes import Answers, Service

__all__ = [
    "Files",
    "Member",
    "Server",
    "WithoutCase",
    "folder",
    "hard",
    "link",
    "manifest",
    "pack",
    "packed",
    "regular",
    "serve_archives",
    "special",
]

LIGHT = [{"id": lzma.FILTER_LZMA2, "preset": 0}]
"""The filters of a 7z archive: those of py7zr take 100 MB of memory for each, which the system has to clear."""

PLATFORMS = ("linux-x86_64", "linux-sbsa", "windows-x86_64")


@dataclass(frozen=True)
class Member:
    """One entry of an archive to be made: a name, a tar type, content or target, a mode."""

    name: str
    kind: bytes = tarfile.REGTYPE
    data: bytes = b""
    target: str = ""
    mode: int = 0o644


def regular(name: str, data: bytes = b"x", mode: int = 0o644) -> Member:
    return Member(name, data=data, mode=mode)


def folder(name: str) -> Member:
    return Member(name, tarfile.DIRTYPE, mode=0o755)


def link(name: str, target: str) -> Member:
    return Member(name, tarfile.SYMTYPE, target=target)


def hard(name: str, target: str) -> Member:
    return Member(name, tarfile.LNKTYPE, target=target)


def special(name: str, kind: bytes = tarfile.CHRTYPE) -> Member:
    return Member(name, kind)


def tar(members: Iterable[Member]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for member in members:
            info = tarfile.TarInfo()
            info.name, info.type, info.linkname = member.name, member.kind, member.target
            info.mode, info.size, info.mtime = member.mode, len(member.data), 0
            archive.addfile(info, io.BytesIO(member.data))
    return out.getvalue()


def zipped(members: Iterable[Member], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    kinds = {
        tarfile.SYMTYPE: 0o120000,
        tarfile.DIRTYPE: 0o040000,
        tarfile.REGTYPE: 0o100000,
        tarfile.FIFOTYPE: 0o010000,
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for member in members:
            info = zipfile.ZipInfo("placeholder", (1980, 1, 1, 0, 0, 0))
            info.filename = info.orig_filename = member.name
            info.create_system = 3
            info.compress_type = method
            info.external_attr = (kinds.get(member.kind, 0o020000) | member.mode) << 16
            archive.writestr(info, member.target.encode() if member.target else member.data)
    return out.getvalue()


def sevenzip(members: Iterable[Member]) -> bytes:
    import py7zr

    out = io.BytesIO()
    with py7zr.SevenZipFile(out, "w", filters=LIGHT) as archive:
        for member in members:
            archive.writestr(member.data, member.name)
    return out.getvalue()


def conda(members: Iterable[Member]) -> bytes:
    import zstandard

    def part(entries: Iterable[Member]) -> bytes:
        return zstandard.compress(tar(entries))

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("metadata.json"), b'{"conda_pkg_format_version": 2}')
        archive.writestr(zipfile.ZipInfo("pkg-x-1-0.tar.zst"), part(members))
        archive.writestr(zipfile.ZipInfo("info-x-1-0.tar.zst"), part([regular("info/index.json", b"{}")]))
    return out.getvalue()


_PACKERS: dict[str, Callable[[Iterable[Member]], bytes]] = {
    "tar.gz": lambda members: gzip.compress(tar(members), mtime=0),
    "tar.xz": lambda members: lzma.compress(tar(members), preset=0),
    "tar.bz2": lambda members: bz2.compress(tar(members)),
    "zip": zipped,
    "7z": sevenzip,
    "conda": conda,
}


def pack(kind: str, members: Iterable[Member]) -> bytes:
    """Return an archive with some members; what they are called and lead to is not looked at."""
    return _PACKERS[kind](members)


def packed(folder_: Path, kind: str, members: Iterable[Member]) -> Path:
    """Write an archive and return its path."""
    path = folder_ / f"sample.{kind}"
    path.write_bytes(pack(kind, members))
    return path


def manifest(product: str, label: str, components: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Return the text of a redist manifest in NVIDIA's form."""
    head = {"release_date": "2024-01-01", "release_label": label, "release_product": product}
    return json.dumps({**head, **components}, indent=4).encode()


def row(path: str, data: bytes) -> dict[str, str]:
    """Return what a manifest says of a file; its size is a string."""
    return {
        "relative_path": path,
        "sha256": hashlib.sha256(data).hexdigest(),
        "md5": hashlib.md5(data).hexdigest(),  # noqa: S324 (what NVIDIA's manifests carry)
        "size": str(len(data)),
    }


class WithoutCase:
    """Stands for a file system that does not tell names apart by their case: whether a path is a new one to it."""

    def __init__(self) -> None:
        self.there: set[str] = set()

    def __call__(self, path: Path) -> bool:
        folded = unicodedata.normalize("NFKC", path.as_posix()).casefold()
        new = folded not in self.there
        self.there.add(folded)
        return new


@dataclass
class Files:
    """What a server serves, by path, with NVIDIA's layout below ``/compute``."""

    data: dict[str, bytes | Path] = field(default_factory=dict)

    def add(
        self, product: str, label: str, component: str, version: str, top: Mapping[str, bytes], *, cuda: str = ""
    ) -> None:
        """Add a release of a product: an archive for each platform, and its manifest."""
        platforms = {}
        for platform in PLATFORMS:
            kind = "zip" if platform.startswith("windows") else "tar.xz"
            stem = f"{component}-{platform}-{version}{f'_{cuda}' if cuda else ''}-archive"
            members = [folder(stem), *(regular(f"{stem}/{name}", data) for name, data in top.items())]
            raw = pack(kind, [*members, regular(f"{stem}/PLATFORM", platform.encode())])
            path = f"{component}/{platform}/{stem}.{kind}"
            self.data[f"/compute/{product}/redist/{path}"] = raw
            platforms[platform] = {cuda: row(path, raw)} if cuda else row(path, raw)
        about = {
            "name": component,
            "license": component,
            "license_path": f"{component}/LICENSE.txt",
            "version": version,
        }
        self.data[f"/compute/{product}/redist/redistrib_{label}.json"] = manifest(
            product, label, {component: {**about, **platforms}}
        )


class Server(Service):
    """A server of some files, which supports Range and If-Range unless configured otherwise.

    Attributes:
        files: What it serves.
        asked: Every request: its path and the bytes from which it was asked for.
        headers: The headers of each request.
        cut: Where connections end, one after the other: after so many bytes of the body; when empty, nowhere.
        ranges: Whether it knows Range.
        statuses: Answers to give instead, one after the other.
        retry_after: What such an answer says of when to ask again.
        drip: Seconds between pieces of `piece` bytes; 0 for as fast as it goes.
        redirect: Where paths that match a pattern are sent to.
        tag: The entity tag; changed by a test when the file changes.
    """

    def __init__(self, files: Mapping[str, bytes | Path] | None = None) -> None:
        super().__init__(_Handler)
        self.files: dict[str, bytes | Path] = dict(files or {})
        self.asked: list[tuple[str, int]] = []
        self.headers: list[dict[str, str]] = []
        self.cut: list[int] = []
        self.ranges = True
        self.statuses: list[int] = []
        self.retry_after = ""
        self.drip = 0.0
        self.piece = 16
        self.redirect: tuple[str, str] | None = None
        self.tag = '"one"'

    def paths(self) -> list[str]:
        """Return what was asked for, without a leading slash's difference."""
        return [path for path, _ in self.asked]


def serve_archives(served: Server, release: str, manifests: Path) -> None:
    """Serve a made archive for each component of NVIDIA's manifest of 12.4.1, under the name of a release."""
    minor, machine = ".".join(release.split(".")[:2]), "linux-x86_64"
    content = {
        "cuda_nvcc": {"bin/nvcc": f"#!/bin/sh\necho 'Cuda compilation tools, release {minor}, V{minor}.1'\n"},
        "cuda_cudart": {
            "include/cuda_runtime_api.h": f"#define CUDART_VERSION {minor.replace('.', '0')}0\n",
            "include/cuda.h": "CUresult CUDAAPI cuInit(unsigned int Flags);\n",
            f"lib/libcudart.so.{minor}": "\x7fELF",
        },
        "libcurand": {"include/curand.h": "", "lib/libcurand.so.10": "\x7fELF"},
    }
    text: dict[str, Any] = json.loads((manifests / "cuda_redistrib_12.4.1.json").read_bytes())
    text["release_label"] = release
    for name, component in text.items():
        if not isinstance(component, dict) or machine not in component:
            continue
        stem = f"{name}-{machine}-{component['version']}-archive"
        made = {f"include/{name}_made.h": "", **content.get(name, {})}
        data = pack("tar.xz", [regular(f"{stem}/{file}", raw.encode(), 0o755) for file, raw in made.items()])
        path = f"{name}/{machine}/{stem}.tar.xz"
        component[machine] = row(path, data)
        served.files[f"/compute/cuda/redist/{path}"] = data
    served.files[f"/compute/cuda/redist/redistrib_{release}.json"] = json.dumps(text).encode()


class _Handler(Answers, BaseHTTPRequestHandler):
    @property
    def served(self) -> Server:
        assert isinstance(self.server.service, Server)
        return self.server.service

    def do_GET(self) -> None:
        served = self.served
        path = unquote(self.path.partition("?")[0])
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(match[1]) if match else 0
        served.asked.append((path, start))
        served.headers.append(dict(self.headers))
        if served.statuses:
            self._plain(served.statuses.pop(0))
        elif served.redirect and re.search(served.redirect[0], path):
            self.send_response(302)
            self.send_header("Location", served.redirect[1] + path)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif path not in served.files:
            self._plain(404)
        else:
            self._send(path, start)

    def _plain(self, status: int) -> None:
        self.send_response(status)
        if self.served.retry_after:
            self.send_header("Retry-After", self.served.retry_after)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, path: str, start: int) -> None:
        served = self.served
        found = served.files[path]
        size = found.stat().st_size if isinstance(found, Path) else len(found)
        fresh = self.headers.get("If-Range", served.tag) == served.tag
        partial = bool(start) and served.ranges and fresh
        if partial and start >= size:
            self._plain(416)
            return
        start = start if partial else 0
        self.send_response(206 if partial else 200)
        self.send_header("Content-Length", str(size - start))
        self.send_header("ETag", served.tag)
        if partial:
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        self.end_headers()
        self._body(found, start, size)

    def _body(self, found: bytes | Path, start: int, size: int) -> None:
        served = self.served
        if isinstance(found, Path):
            with found.open("rb") as file:
                self.connection.sendfile(file, start)
            return
        end = min(size, start + served.cut.pop(0)) if served.cut else size
        if served.drip:
            for at in range(start, end, served.piece):
                self.wfile.write(found[at : min(end, at + served.piece)])
                if served.stopping.wait(served.drip):
                    break
        else:
            self.wfile.write(found[start:end])
        if end < size:
            self.close_connection = True
