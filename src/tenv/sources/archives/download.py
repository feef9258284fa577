"""Download files over HTTP: in parallel, resumed where they broke off, hashed while they are written.

What a server sends is trusted in nothing: a file counts when its digest is the one that was asked for.
"""

import itertools
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

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
    """A file that has arrived.

    Attributes:
        path: Where it is.
        sha256: Its digest in hex.
        size: Its bytes.
    """

    path: Path
    sha256: str
    size: int


def _local(address: str) -> Path:
    """Return the file that a ``file:`` address of a mirror names."""
    from urllib.request import url2pathname  # late: 20 ms, since it brings all of HTTP along

    return Path(url2pathname(urlsplit(address).path))


@dataclass(slots=True)
class Fetcher:
    """Brings files from their servers or from mirrors of these.

    Attributes:
        settings: The user's settings: mirrors.
        http: What makes the requests.
        offline: Never use the network.
        on_bytes: Called with the name of a file, the bytes that are there of it, and its total.
    """

    settings: Settings = field(default_factory=Settings)
    http: Http = field(default_factory=Http)
    offline: bool = False
    on_bytes: Callable[[str, int, int | None], None] = lambda _name, _done, _total: None

    @property
    def stopped(self) -> threading.Event:
        """Set to end all downloads."""
        return self.http.stopped

    def text(self, url: str, what: str) -> bytes | None:
        """Return a small file whole, None when the server has none of that name.

        Args:
            url: Its canonical address.
            what: What messages call it.

        Raises:
            NetworkError: No server answers, or not with what was asked.
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
                raise NetworkError(f"{what}: {shown(answer.url)} sends more than {_MAX_TEXT} bytes")
            if time.monotonic() - start > limit:
                raise Interrupted(f"it took longer than {limit:g} s")
        return b"".join(parts)

    def file(self, wanted: RemoteFile, path: Path) -> Fetched:
        """Bring a file to `path`, going on with what is there of it.

        Raises:
            HashMismatchError: The bytes are not those that were asked for.
            NetworkError: No server sends it.
            StorageError: The disk is full, or `path` can't be written.
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
                raise NetworkError(f"{wanted.name}: there is no {_local(address)}")
            shutil.copyfile(_local(address), path)
        with path.open("ab"):
            pass  # it may be there in part
        with path.open("r+b") as file:
            part = PartialFile(file, wanted, ResumeNote(path.with_name(path.name + ".from"), address))
            part.resume()
            again = part.done > 0
            self._complete(part, address)
            if wanted.sha256 and part.digest.hexdigest() != wanted.sha256 and again:
                part.begin()  # what was there before may have been of another file: once more, from its first byte
                self._complete(part, address)
        found = part.digest.hexdigest()
        if wanted.sha256 and found != wanted.sha256:
            path.unlink()
            part.mark.forget()
            raise HashMismatchError(
                f"{wanted.name}: {shown(address)} has another sha256 than the one that is wanted\n"
                f"  wanted {wanted.sha256}\n  found  {found} ({part.done} bytes)",
                hint="the file was changed where it is published or on the way; nothing of it was used",
            )
        part.mark.forget()
        return Fetched(path, found, part.done)

    def _complete(self, part: PartialFile, address: str) -> None:
        """Ask until the file is whole; an attempt that brings something is followed by another one at once."""
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
                raise NetworkError(f"{wanted.name}: {shown(address)} says that it has {total} bytes")
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
            raise Unanswered(f"the server answered {status}")
        hint = "its address may have changed" if status in (404, 410) else ""
        if status in (401, 403, 407):
            hint = "the server or the proxy wants to know who asks: put a user and a password into ~/.netrc"
        raise NetworkError(f"{what}: {shown(answer.url)} answered {status}", hint=hint)

    def _check_online(self, what: str) -> None:
        if self.offline:
            raise NetworkError(
                f"{what} is not in the store, and the network is not to be used",
                hint="run the same command without `--offline`",
            )

    def _wait(self, attempt: int, what: str, address: str, error: Interrupted) -> None:
        patience = self.http.settings.patience
        if attempt >= patience.attempts:
            raise _silence(what, address, error) from error
        if self.stopped.wait(patience.pause * 2 ** (attempt - 1)):
            raise CancelledError("interrupted", hint="the same command goes on where this one stopped")


def _silence(what: str, address: str, error: Interrupted | Unanswered) -> NetworkError:
    return NetworkError(
        f"{what}: {shown(address)} does not send it: {error}",
        hint="the same command goes on where this one stopped; `[mirrors]` in config.toml names other servers",
    )
