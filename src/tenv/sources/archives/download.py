"""Download files over HTTP: in parallel, resumed where they broke off, hashed while they are written.

What a server sends is trusted in nothing: a file counts when its digest is the one that was asked for.
"""

import itertools
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tenv import __version__
from tenv.core.errors import CancelledError, HashMismatchError, NetworkError
from tenv.core.files import storage_errors
from tenv.sources.archives.partial_file import (
    MAX_FILE,
    PARTIAL,
    UNSATISFIABLE,
    Drip,
    Interrupted,
    Mark,
    Part,
    Patience,
    Wanted,
    shown,
)
from tenv.targets.config import Settings

if TYPE_CHECKING:
    import requests

__all__ = ["Fetched", "Fetcher", "Patience", "Wanted", "shown"]

_CHUNK = 1 << 17  # small enough to stay in the processor's cache until it is hashed and written
_MAX_TEXT = 32 << 20
_OK = 200
_LATER = (408, 425, 429, 500, 502, 503, 504)
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
    from urllib.request import url2pathname  # noqa: PLC0415 (late: 20 ms, since it brings all of HTTP along)

    return Path(url2pathname(urlsplit(address).path))


@dataclass(slots=True)
class Fetcher:
    """Makes requests, with this user's proxies, certificates and mirrors.

    Attributes:
        settings: The user's settings: mirrors.
        patience: How long a server is waited for.
        offline: Never use the network.
        stopped: Set to end all downloads.
        on_bytes: Told how many bytes of a file are there, by name and total.
    """

    settings: Settings = field(default_factory=Settings)
    patience: Patience = field(default_factory=Patience)
    offline: bool = False
    stopped: threading.Event = field(default_factory=threading.Event)
    on_bytes: Callable[[str, int, int | None], None] = lambda _name, _done, _total: None
    _local: threading.local = field(default_factory=threading.local)

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
                with self._get(address, {}) as answer:
                    if answer.status_code in (404, 410):
                        return None
                    self._check_status(answer, what, (_OK,))
                    return self._small(answer, what)
            except Interrupted as error:
                self._wait(attempt, what, address, error)
        raise AssertionError  # the loop has no end

    def _small(self, answer: "requests.Response", what: str) -> bytes:
        parts, size, start = [], 0, time.monotonic()
        for piece in self._pieces(answer):
            parts.append(piece)
            size += len(piece)
            if size > _MAX_TEXT:
                raise NetworkError(f"{what}: {shown(answer.url)} sends more than {_MAX_TEXT} bytes")
            if time.monotonic() - start > 2 * self.patience.window:
                raise Interrupted(f"it took longer than {2 * self.patience.window:g} s")
        return b"".join(parts)

    def file(self, wanted: Wanted, path: Path) -> Fetched:
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

    def _file(self, wanted: Wanted, address: str, path: Path) -> Fetched:
        if address.startswith("file:"):
            if not _local(address).is_file():
                raise NetworkError(f"{wanted.name}: there is no {_local(address)}")
            shutil.copyfile(_local(address), path)
        with path.open("ab"):
            pass  # it may be there in part
        with path.open("r+b") as file:
            part = Part(file, wanted, Mark(path.with_name(path.name + ".from"), address))
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

    def _complete(self, part: Part, address: str) -> None:
        """Ask until the file is whole; an attempt that brings something is followed by another one at once."""
        if address.startswith("file:"):
            return
        fruitless = 0
        while True:
            before = part.done
            try:
                self._attempt(part, address)
                return
            except Interrupted as error:
                fruitless = 0 if part.done >= before + _PROGRESS else fruitless + 1
                if fruitless:
                    self._wait(fruitless, part.wanted.name, address, error)

    def _attempt(self, part: Part, address: str) -> None:
        wanted = part.wanted
        if part.is_whole():
            return
        with self._get(address, part.headers()) as answer:
            self._check_status(answer, wanted.name, (_OK, PARTIAL, UNSATISFIABLE))
            total = part.accept(answer)
            if total is not None and total > MAX_FILE:
                raise NetworkError(f"{wanted.name}: {shown(address)} says that it has {total} bytes")
            drip = Drip(self.patience)
            for piece in self._pieces(answer):
                part.write(piece, total)
                drip.count(len(piece))
                self.on_bytes(wanted.name, part.done, total)
            if total is not None and part.done < total:
                raise Interrupted(f"the connection ended after {part.done} of {total} bytes")

    def _pieces(self, answer: "requests.Response") -> Any:
        """Yield the bytes of an answer as they were sent; a broken connection ends the attempt."""
        import requests  # noqa: PLC0415 (late: 82 ms)
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            while piece := answer.raw.read1(_CHUNK, decode_content=False):
                if self.stopped.is_set():
                    raise CancelledError("interrupted", hint="the same command goes on where this one stopped")
                yield piece
        except (HTTPError, requests.RequestException, OSError) as error:
            raise Interrupted(_reason(error)) from error

    def _get(self, address: str, headers: Mapping[str, str]) -> "requests.Response":
        import requests  # noqa: PLC0415 (late: 82 ms)

        if self.stopped.is_set():
            raise CancelledError("interrupted", hint="the same command goes on where this one stopped")
        session = self._session()
        try:
            return session.get(
                address,
                # Identity: a server that packs a .tar.gz once more would send other bytes than those that were hashed.
                headers={"Accept-Encoding": "identity", **headers},
                stream=True,
                timeout=(self.patience.connect, self.patience.read),
            )
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, requests.TooManyRedirects) as error:
            raise NetworkError(f"{shown(address)}: {error}") from error
        except (requests.RequestException, OSError, ValueError) as error:
            raise Interrupted(_reason(error)) from error

    def _session(self) -> "requests.Session":
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = _plain_session()
            session.headers["User-Agent"] = f"tenv/{__version__}"
            session.max_redirects = 10
        return session

    def _check_status(self, answer: "requests.Response", what: str, good: tuple[int, ...]) -> None:
        status = answer.status_code
        if status in good:
            return
        if status in _LATER:
            raise Interrupted(f"the server answered {status}")
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
        if attempt >= self.patience.attempts:
            raise NetworkError(
                f"{what}: {shown(address)} does not send it: {error}",
                hint="the same command goes on where this one stopped; `[mirrors]` in config.toml names other servers",
            ) from error
        if self.stopped.wait(self.patience.pause * 2 ** (attempt - 1)):
            raise CancelledError("interrupted", hint="the same command goes on where this one stopped")


def _plain_session() -> "requests.Session":
    """Return a session that follows no redirect from https to http."""
    import requests  # noqa: PLC0415 (late: 82 ms)

    class Session(requests.Session):
        """Keeps to https once it was asked for; `requests` itself drops credentials on the way to another host."""

        def get_redirect_target(self, resp: requests.Response) -> str | None:
            target = super().get_redirect_target(resp)
            if target and resp.url.startswith("https:") and target.lower().startswith("http:"):
                raise requests.exceptions.InvalidURL(f"is redirected to {shown(target)}, which is not encrypted")
            return target

    return Session()


def _reason(error: BaseException) -> str:
    """Return what went wrong in a few words: libraries put the whole chain of their objects into a message."""
    import requests  # noqa: PLC0415

    if "IncompleteRead" in f"{type(error).__name__} {error}":
        return "the connection ended before all was there"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy does not answer"
    if isinstance(error, requests.exceptions.SSLError):
        return f"the server can't prove who it is ({_innermost(error)})"
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return "no connection in time"
    if isinstance(error, requests.exceptions.Timeout) or "timed out" in str(error).lower():
        return "no answer in time"
    return _innermost(error)


def _innermost(error: BaseException) -> str:
    seen: BaseException = error
    while (inner := seen.__cause__ or seen.__context__ or getattr(seen, "reason", None)) and isinstance(
        inner, BaseException
    ):
        seen = inner
    if isinstance(seen, OSError) and seen.strerror:
        return seen.strerror
    return str(seen).splitlines()[0] if str(seen) else type(seen).__name__
