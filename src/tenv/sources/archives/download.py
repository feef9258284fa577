"""Downloads files over HTTP: in parallel, resumable, hashed while they are written.

No response of a server is trusted: a file is accepted if its digest is the requested one.
"""

import contextlib
import hashlib
import itertools
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import field
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from tenv.core.dataclass import dataclass
from tenv.core.errors import CancelledError, HashMismatchError, NetworkError
from tenv.core.files import storage_errors
from tenv.core.http import LATER, PROXY_ASKS, PROXY_LOGIN, Http, HttpResponse, Interrupted, Unanswered
from tenv.core.http_settings import Patience, shown
from tenv.core.untrusted import whole_number
from tenv.targets.config import Settings

if TYPE_CHECKING:
    from tenv.core.carried_files import CarriedFiles

_MAX_FILE = 64 << 30
"""The maximum size of a file in bytes."""

_OK, _PARTIAL, _UNSATISFIABLE = 200, 206, 416
_CHUNK = 1 << 20
_MAX_TEXT = 32 << 20
_PROGRESS = 1 << 16


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file to download."""

    name: str
    """Its name in messages."""
    url: str
    """Its canonical URL."""
    sha256: str = ""
    """The expected digest; empty if unknown."""
    size: int | None = None
    """Its size in bytes; None if unknown."""
    compared: bool = False
    """Whether the caller compares the content itself, so that an earlier command's part of it counts."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A downloaded file."""

    path: Path
    """Its path."""
    sha256: str
    """Its digest in hex."""
    size: int
    """Its size in bytes."""


class _Drip:
    """Ends a download that is too slow."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._since = time.monotonic()
        self._count = 0

    def count(self, size: int) -> None:
        """Count received bytes; raises Interrupted if there are too few for too long."""
        self._count += size
        passed = time.monotonic() - self._since
        if passed > self._patience.window:
            if self._count < self._patience.slow * passed:
                raise Interrupted(f"only {self._count} bytes in {passed:.0f} s")
            self._since, self._count = time.monotonic(), 0


class _PartialFile:
    """A partial file and its digest."""

    def __init__(self, file: IO[bytes], wanted: RemoteFile, address: str) -> None:
        self.file = file
        self.wanted = wanted
        self.address = address
        self.digest = hashlib.sha256()
        self.done = 0
        self._validator = ""

    def resume(self) -> None:
        """Resume the partial file of an earlier command; without an expected digest nothing would compare it."""
        if not self.wanted.sha256 and not self.wanted.compared:
            self.begin()
            return
        while piece := self.file.read(_CHUNK):
            self.digest.update(piece)
            self.done += len(piece)
        if self.wanted.size is not None and self.done > self.wanted.size:
            self.begin()

    def begin(self) -> None:
        """Restart with an empty file."""
        self.file.seek(0)
        self.file.truncate()
        self.digest = hashlib.sha256()
        self.done = 0

    def is_whole(self) -> bool:
        """Return whether the file is complete, as far as its size is known."""
        if self.wanted.size is not None:
            return self.done == self.wanted.size
        return self.done > 0 and self.digest.hexdigest() == self.wanted.sha256

    def headers(self) -> dict[str, str]:
        """Return the request headers for the rest of the same version of the file."""
        if not (
            self.wanted.sha256 or self.wanted.compared or self._validator
        ):  # nothing would show that the file has changed
            self.begin()
        if not self.done:
            return {}
        headers = {"Range": f"bytes={self.done}-"}
        return headers | ({"If-Range": self._validator} if self._validator else {})

    def accept(self, answer: HttpResponse) -> int | None:
        """Validate a response, and return the size of the whole file; None if the server does not report it."""
        if answer.status == _UNSATISFIABLE:
            if self.done == _content_range(answer.headers.get("Content-Range", ""))[1]:
                return self.done  # an earlier command had received the last byte
            self.begin()
            raise Interrupted("the server can't send the rest of the file")
        length = whole_number(answer.headers.get("Content-Length", ""))
        total = length
        if answer.status == _PARTIAL:
            start, total = _content_range(answer.headers.get("Content-Range", ""))
            if start != self.done:
                self.begin()
                raise Interrupted("the server sent another range than the requested one")
        elif self.done:
            self.begin()  # the server has no range requests, or the file has changed
        if self.wanted.size is not None and total not in (None, self.wanted.size):
            raise HashMismatchError(
                f"{self.wanted.name}: {shown(answer.url)} has {total} bytes, expected {self.wanted.size}",
                hint="the file was replaced by its publisher or changed by a proxy; tenv has used none of it",
            )
        tag = answer.headers.get("ETag", "")
        self._validator = tag if tag and not tag.startswith("W/") else answer.headers.get("Last-Modified", "")
        return self.wanted.size if self.wanted.size is not None else total

    def write(self, piece: bytes, total: int | None) -> None:
        """Write received bytes."""
        if self.done + len(piece) > (_MAX_FILE if total is None else total):
            self.begin()
            raise NetworkError(f"{self.wanted.name}: {shown(self.address)} sent more than it declared")
        self.file.seek(self.done)
        self.file.write(piece)
        self.digest.update(piece)
        self.done += len(piece)


def _local(address: str) -> Path:
    """Return the path of a ``file:`` URL of a mirror."""
    from urllib.request import url2pathname  # late: 20 ms, since it imports all of HTTP

    return Path(url2pathname(urlsplit(address).path))


@dataclass(slots=True)
class Fetcher:
    """Downloads files from their servers or mirrors."""

    settings: Settings = field(default_factory=Settings)
    """The user's settings, for mirrors."""
    http: Http = field(default_factory=Http)
    """The HTTP client."""
    offline: bool = False
    """Never use the network."""
    carried: "CarriedFiles | None" = None
    """The files that are taken from a folder, by their digests; None without such a folder."""
    on_bytes: Callable[[str, int, int | None], None] = lambda _name, _done, _total: None
    """Receives the name of a file, its present size and its total size."""

    @property
    def stopped(self) -> threading.Event:
        """The event that stops all downloads."""
        return self.http.stopped

    def text(self, url: str, what: str) -> bytes | None:
        """Return the content of a small file; None if the server does not have it.

        Args:
            url: Its canonical URL.
            what: Its name in messages.

        Raises:
            NetworkError: No server responds, or the response is not valid.
        """
        self._check_online(what)
        errors = []
        for address in self.settings.served(url):
            try:
                if address.startswith("file:"):
                    return _local(address).read_bytes() if _local(address).is_file() else None
                return self._text(address, what)
            except NetworkError as error:
                errors.append(error)
        raise errors[-1]

    def _text(self, address: str, what: str) -> bytes | None:
        for attempt in itertools.count(1):
            try:
                with self.http.get(address) as answer:
                    if answer.status in (404, 410):
                        return None
                    self._check_status(answer, what, (_OK,))
                    return self._small(answer, what)
            except Unanswered as error:
                raise _silence(what, address, error) from error
            except Interrupted as error:
                self._wait(attempt, what, address, error)
        raise AssertionError  # the loop has no end

    def _small(self, answer: HttpResponse, what: str) -> bytes:
        parts, size, start = [], 0, time.monotonic()
        limit = 2 * self.http.settings.patience.window
        for piece in answer.pieces(decoded=True):
            parts.append(piece)
            size += len(piece)
            if size > _MAX_TEXT:
                raise NetworkError(f"{what}: {shown(answer.url)} sent more than {_MAX_TEXT} bytes")
            if time.monotonic() - start > limit:
                raise Interrupted(f"it took longer than {limit:g} s")
        return b"".join(parts)

    def file(self, wanted: RemoteFile, path: Path) -> Fetched:
        """Download a file to `path`, resuming a partial file.

        Raises:
            HashMismatchError: The bytes have another digest.
            NetworkError: No server sends the file.
            StorageError: The disk is full, or `path` is not writable.
        """
        own = self.carried.find(wanted.sha256) if self.carried else None
        addresses = (own.as_uri(),) if own else self.settings.served(wanted.url)
        if not all(address.startswith("file:") for address in addresses):
            self._check_online(wanted.name)
        errors: list[NetworkError] = []
        for address in addresses:
            try:
                with storage_errors(f"can't write {path}"):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with _no_empty(path):
                        return self._file(wanted, address, path)
            except NetworkError as error:
                errors.append(error)
        raise errors[-1]

    def _file(self, wanted: RemoteFile, address: str, path: Path) -> Fetched:
        if address.startswith("file:"):
            if not _local(address).is_file():
                raise NetworkError(f"{wanted.name}: {_local(address)} does not exist")
            shutil.copyfile(_local(address), path)
        with path.open("ab"):
            pass  # a partial file may exist
        with path.open("r+b") as file:
            part = _PartialFile(file, wanted, address)
            part.resume()
            again = part.done > 0
            self._complete(part, address)
            if wanted.sha256 and part.digest.hexdigest() != wanted.sha256 and again:
                part.begin()  # the partial file may be of another version: restart from the first byte
                self._complete(part, address)
        found = part.digest.hexdigest()
        if wanted.sha256 and found != wanted.sha256:
            path.unlink()
            raise HashMismatchError(
                f"{wanted.name}: {shown(address)} has another sha256 than expected\n"
                f"  expected {wanted.sha256}\n  received {found} ({part.done} bytes)",
                hint="the file was replaced by its publisher or changed by a proxy; tenv has used none of it",
            )
        return Fetched(path, found, part.done)

    def _complete(self, part: _PartialFile, address: str) -> None:
        """Retry until the file is complete; an attempt that received bytes is retried at once."""
        if address.startswith("file:"):
            return
        fruitless = 0
        while True:
            before = part.done
            try:
                self._attempt(part, address)
                return
            except Unanswered as error:
                raise _silence(part.wanted.name, address, error) from error
            except Interrupted as error:
                fruitless = 0 if part.done >= before + _PROGRESS else fruitless + 1
                if fruitless:
                    self._wait(fruitless, part.wanted.name, address, error)

    def _attempt(self, part: _PartialFile, address: str) -> None:
        wanted = part.wanted
        if part.is_whole():
            return
        with self.http.get(address, part.headers()) as answer:
            self._check_status(answer, wanted.name, (_OK, _PARTIAL, _UNSATISFIABLE))
            total = part.accept(answer)
            if total is not None and total > _MAX_FILE:
                raise NetworkError(f"{wanted.name}: {shown(address)} reports a size of {total} bytes")
            drip = _Drip(self.http.settings.patience)
            for piece in answer.pieces() if answer.status != _UNSATISFIABLE else ():
                part.write(piece, total)
                drip.count(len(piece))
                self.on_bytes(wanted.name, part.done, total)
            if total is not None and part.done < total:
                raise Interrupted(f"the connection ended after {part.done} of {total} bytes")

    def _check_status(self, answer: HttpResponse, what: str, good: tuple[int, ...]) -> None:
        status = answer.status
        if status in good:
            return
        if status in LATER:
            raise Unanswered(f"the server responded with status {status}")
        hint = "the file may have another address now" if status in (404, 410) else ""
        if status in (401, 403):
            hint = "the server requires credentials: put user and password into ~/.netrc"
        if status == PROXY_ASKS:
            hint = PROXY_LOGIN
        raise NetworkError(f"{what}: {shown(answer.url)} responded with status {status}", hint=hint)

    def _check_online(self, what: str) -> None:
        if self.offline:
            raise NetworkError(
                f"{what} is not in the store, and `--offline` turns off the network",
                hint="run the same command without `--offline`",
            )

    def _wait(self, attempt: int, what: str, address: str, error: Interrupted) -> None:
        patience = self.http.settings.patience
        if attempt >= patience.attempts:
            raise _silence(what, address, error) from error
        if self.stopped.wait(patience.pause * 2 ** (attempt - 1)):
            raise CancelledError("interrupted", hint="run the same command again to continue")


@contextlib.contextmanager
def _no_empty(path: Path) -> Iterator[None]:
    """Remove a partial file without a byte if the body fails: there is nothing to go on with."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            if not path.stat().st_size:
                path.unlink()
        raise


def _silence(what: str, address: str, error: Interrupted | Unanswered) -> NetworkError:
    return NetworkError(
        f"{what}: {shown(address)} does not send the file: {error}",
        hint=getattr(error, "hint", "")
        or "run the same command again to continue; `[mirrors]` in config.toml names other servers",
    )


def _content_range(text: str) -> tuple[int | None, int | None]:
    """Return the start and the total size in a value such as ``bytes 10-19/100``."""
    unit, _, rest = text.partition(" ")
    span, _, total = rest.partition("/")
    return (whole_number(span.partition("-")[0]) if unit == "bytes" else None), whole_number(total)
