"""Downloads files over HTTP: in parallel, resumable, hashed while they are written.

No response of a server is trusted: a file is accepted if its digest is the requested one.
"""

import itertools
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from urllib.parse import urlsplit

from tenv.core.dataclass import dataclass
from tenv.core.errors import CancelledError, HashMismatchError, NetworkError
from tenv.core.files import storage_errors
from tenv.core.http import LATER, Http, HttpResponse, Interrupted, Unanswered
from tenv.core.http_settings import shown
from tenv.sources.archives.partial_file import (
    MAX_FILE,
    PARTIAL,
    UNSATISFIABLE,
    Drip,
    PartialFile,
    RemoteFile,
    ResumeNote,
)
from tenv.targets.config import Settings

__all__ = ["Fetched", "Fetcher"]

_MAX_TEXT = 32 << 20
_OK = 200
_PROGRESS = 1 << 16


@dataclass(frozen=True, slots=True)
class Fetched:
    """A downloaded file.

    Attributes:
        path: Its path.
        sha256: Its digest in hex.
        size: Its size in bytes.
    """

    path: Path
    sha256: str
    size: int


def _local(address: str) -> Path:
    """Return the path of a ``file:`` URL of a mirror."""
    from urllib.request import url2pathname  # late: 20 ms, since it imports all of HTTP

    return Path(url2pathname(urlsplit(address).path))


@dataclass(slots=True)
class Fetcher:
    """Downloads files from their servers or mirrors.

    Attributes:
        settings: The user's settings, for mirrors.
        http: The HTTP client.
        offline: Never use the network.
        on_bytes: Receives the name of a file, its present size and its total size.
    """

    settings: Settings = field(default_factory=Settings)
    http: Http = field(default_factory=Http)
    offline: bool = False
    on_bytes: Callable[[str, int, int | None], None] = lambda _name, _done, _total: None

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
        self._check_online(wanted.name)
        errors: list[NetworkError] = []
        for address in self.settings.served(wanted.url):
            try:
                with storage_errors(f"can't write {path}"):
                    path.parent.mkdir(parents=True, exist_ok=True)
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
            part = PartialFile(file, wanted, ResumeNote(path.with_name(path.name + ".from"), address))
            part.resume()
            again = part.done > 0
            self._complete(part, address)
            if wanted.sha256 and part.digest.hexdigest() != wanted.sha256 and again:
                part.begin()  # the partial file may be of another version: restart from the first byte
                self._complete(part, address)
        found = part.digest.hexdigest()
        if wanted.sha256 and found != wanted.sha256:
            path.unlink()
            part.mark.forget()
            raise HashMismatchError(
                f"{wanted.name}: {shown(address)} has another sha256 than expected\n"
                f"  expected {wanted.sha256}\n  received {found} ({part.done} bytes)",
                hint="the file was replaced by its publisher or changed by a proxy; tenv has used none of it",
            )
        part.mark.forget()
        return Fetched(path, found, part.done)

    def _complete(self, part: PartialFile, address: str) -> None:
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

    def _attempt(self, part: PartialFile, address: str) -> None:
        wanted = part.wanted
        if part.is_whole():
            return
        with self.http.get(address, part.headers()) as answer:
            self._check_status(answer, wanted.name, (_OK, PARTIAL, UNSATISFIABLE))
            total = part.accept(answer)
            if total is not None and total > MAX_FILE:
                raise NetworkError(f"{wanted.name}: {shown(address)} reports a size of {total} bytes")
            drip = Drip(self.http.settings.patience)
            for piece in answer.pieces():
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
        if status in (401, 403, 407):
            hint = "the server or proxy requires credentials: put user and password into ~/.netrc"
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


def _silence(what: str, address: str, error: Interrupted | Unanswered) -> NetworkError:
    return NetworkError(
        f"{what}: {shown(address)} does not send the file: {error}",
        hint="run the same command again to continue; `[mirrors]` in config.toml names other servers",
    )
