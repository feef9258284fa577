"""Conda channels that serve package lists and nothing else, on a free port of 127.0.0.1, and can fail on request."""

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.support.fakes import Answers, Service

__all__ = [
    "CANONICAL",
    "EXCERPT",
    "Channels",
    "Trouble",
    "differences",
    "package",
    "place_of",
    "read_folder",
    "records_of",
]

EXCERPT = Path(__file__).parent.parent / "data" / "channels"
"""Records of real channels, committed: those of the locks and of the cases that the tests are about."""

CANONICAL = {
    "main": "https://repo.anaconda.com/pkgs/main",
    "r": "https://repo.anaconda.com/pkgs/r",
    "msys2": "https://repo.anaconda.com/pkgs/msys2",
    "intel-repos": "https://software.repos.intel.com/python/conda",
}
"""Folders whose channel is not on conda.anaconda.org under the folder's own name."""

_FOREVER = 60.0

Records = Mapping[str, Mapping[str, Any]]


class Trouble(StrEnum):
    """A way in which a channel can fail."""

    SILENT = "takes the request and never answers"
    GONE = "answers 404"
    FORBIDDEN = "answers 403"
    ERROR = "answers 500"
    GARBAGE = "serves something else than a package list"
    CUT = "ends the connection in the middle"


def package(name: str, version: str, build: str = "0", *depends: str, **more: Any) -> dict[str, Any]:
    """Return a record of a package that does not exist."""
    digest = hashlib.sha256(f"{name} {version} {build}".encode()).hexdigest()
    return {
        "name": name,
        "version": version,
        "build": build,
        "build_number": 0,
        "depends": list(depends),
        "md5": digest[:32],
        "sha256": digest,
        "size": 1000,
        "timestamp": 1700000000000,
        **more,
    }


def read_folder(folder: Path, incomplete: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
    """Return the package lists in a folder, by channel and platform.

    Args:
        folder: ``CHANNEL/PLATFORM/repodata.json``, a channel's name being a path of its own.
        incomplete: Of the records that ``less-complete.json`` beside a list names, those of packages of these names are
            kept; all of them when None.
    """
    kept = set(incomplete or ())
    found = {}
    for path in sorted(folder.rglob("repodata.json")):
        data = json.loads(path.read_text())
        beside = path.with_name("less-complete.json")
        for file in json.loads(beside.read_text()) if incomplete is not None and beside.is_file() else ():
            for rows in (data["packages"], data["packages.conda"]):
                if file in rows and rows[file]["name"] not in kept:
                    del rows[file]
        found[str(path.parent.relative_to(folder))] = data
    return found


class Channels(Service):
    """Channels by name.

    Attributes:
        lists: The package lists, by channel and platform, such as ``conda-forge/linux-64``, as values or as bytes.
        files: Other files, by path, such as the shards of a package list.
        asked: Every path that was asked for.
        authorization: The credentials that came with requests.
        trouble: How the channels fail now, or None.
        where: A part of the paths that fail.
    """

    def __init__(self, lists: Mapping[str, Any] | None = None) -> None:
        super().__init__(_Handler)
        self.lists = dict(lists or {})
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.authorization: set[str] = set()
        self.trouble: Trouble | None = None
        self.where = ""

    def add(self, channel: str, *records: dict[str, Any], platform: str = "linux-64") -> None:
        """Add records to a channel; it has a list for noarch, too, from then on."""
        for subdir in (platform, "noarch"):
            empty = {"info": {"subdir": subdir}, "packages": {}, "packages.conda": {}, "repodata_version": 1}
            self.lists.setdefault(f"{channel}/{subdir}", empty)
        for record in records:
            file = f"{record['name']}-{record['version']}-{record['build']}.conda"
            self.lists[f"{channel}/{platform}"]["packages.conda"][file] = {"subdir": platform, **record}

    def mirrors(self) -> dict[str, tuple[str, ...]]:
        """Return where each channel is served, by its canonical URL."""
        own = {url: (f"{self.url}/{name}",) for name, url in CANONICAL.items()}
        return {"https://conda.anaconda.org": (self.url,), **own}

    def settings(self) -> str:
        """Return tenv's ``config.toml`` that leads to these channels."""
        rows = [f'"{url}" = {json.dumps(list(served))}' for url, served in self.mirrors().items()]
        return "[mirrors]\n" + "\n".join(rows) + "\n"

    @contextmanager
    def failing(self, trouble: Trouble, where: str = "") -> Iterator[None]:
        """Let the channels fail while the body runs."""
        self.trouble, self.where = trouble, where
        yield
        self.trouble = None


class _Handler(Answers, BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        channels = self.server.service
        assert isinstance(channels, Channels)
        channels.asked.append(self.path)
        channels.authorization.add(self.headers.get("Authorization", ""))
        trouble = channels.trouble if channels.where in self.path else None
        refusals = {Trouble.GONE: 404, Trouble.FORBIDDEN: 403, Trouble.ERROR: 500}
        place, _, file = self.path.strip("/").rpartition("/")
        if trouble is Trouble.SILENT:
            channels.stopping.wait(_FOREVER)
            self.close_connection = True
        elif trouble in refusals:
            self._send(refusals[trouble], b"no", body=body)
        elif (data := channels.files.get(f"{place}/{file}")) is not None:
            self._send(200, data, body=body)
        elif file != "repodata.json" or place not in channels.lists:
            self._send(404, b"no such file", body=body)
        elif trouble is Trouble.GARBAGE:
            self._send(200, b"<html>log in first</html>", body=body)
        else:
            data = channels.lists[place]
            data = data if isinstance(data, bytes) else json.dumps(data).encode()
            self._send(200, data, body=body, cut=trouble is Trouble.CUT)

    def _send(self, status: int, data: bytes, *, body: bool, cut: bool = False) -> None:
        tag = f'"{zlib.crc32(data):08x}"'
        if status == 200 and self.headers.get("If-None-Match") == tag:
            status, data = 304, b""
        self.send_response(status)
        self.send_header("ETag", tag)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data[: len(data) // 2] if cut else data)
        if cut:
            self.close_connection = True


def place_of(name: str) -> str:
    """Return the URL of a channel's part, such as ``conda-forge/linux-64``, by the name of its folder."""
    channel, _, subdir = name.rpartition("/")
    return f"{CANONICAL.get(channel, f'https://conda.anaconda.org/{channel}')}/{subdir}"


def records_of(lists: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return every record by the URL of its package."""
    return {
        f"{place_of(name)}/{file}": record
        for name, data in lists.items()
        for kind in ("packages", "packages.conda")
        for file, record in data[kind].items()
    }


def differences(locked: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the fields of a channel's record that a lock has otherwise."""
    return {
        key: (locked.get(key), value)
        for key, value in record.items()
        if key not in NOT_IN_LOCKS and (locked.get(key) or None) != (value or None)
    }


NOT_IN_LOCKS = ("arch", "platform", "package_type", "requires", "namespace", "namespace_in_name", "app_type")
"""Fields that no lock of the pixi format holds, or that follow from the platform."""
