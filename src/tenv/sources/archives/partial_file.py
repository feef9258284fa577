"""One download: the partial file, the validation of responses, and the time limits."""

import hashlib
import time
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import HashMismatchError, NetworkError
from tenv.core.file_content import read_text
from tenv.core.http import HttpResponse, Interrupted
from tenv.core.http_settings import Patience, shown

__all__ = ["MAX_FILE", "PARTIAL", "UNSATISFIABLE", "Drip", "PartialFile", "RemoteFile", "ResumeNote"]

MAX_FILE = 64 << 30
"""The maximum size of a file in bytes."""

PARTIAL, UNSATISFIABLE = 206, 416
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file to download.

    Attributes:
        name: Its name in messages.
        url: Its canonical URL.
        sha256: The expected digest; empty if unknown.
        size: Its size in bytes; None if unknown.
    """

    name: str
    url: str
    sha256: str = ""
    size: int | None = None


class Drip:
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


@dataclass(frozen=True, slots=True)
class ResumeNote:
    """The file beside a partial file, with its address and version.

    Attributes:
        path: The path of this file.
        address: The present address.
    """

    path: Path
    address: str

    def validator(self) -> str:
        """Return the entity tag or date of the partial file, if it is from this address."""
        try:
            address, _, validator = read_text(self.path).partition("\n")
        except (OSError, ValueError):
            return ""
        return validator.strip() if address == shown(self.address) else ""

    def write(self, validator: str) -> None:
        """Record the address and version of the partial file."""
        self.path.write_text(f"{shown(self.address)}\n{validator}\n", "utf-8")

    def forget(self) -> None:
        """Remove this file."""
        self.path.unlink(missing_ok=True)


class PartialFile:
    """A partial file and its digest."""

    def __init__(self, file: Any, wanted: RemoteFile, mark: ResumeNote) -> None:
        self.file = file
        self.wanted = wanted
        self.mark = mark
        self.digest = hashlib.sha256()
        self.done = 0
        self._validator = mark.validator()

    def resume(self) -> None:
        """Resume the partial file of an earlier command; a file without an expected digest needs a validator."""
        if not self.wanted.sha256 and not self._validator:
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
        if not self.done:
            return {}
        headers = {"Range": f"bytes={self.done}-"}
        return headers | ({"If-Range": self._validator} if self._validator else {})

    def accept(self, answer: HttpResponse) -> int | None:
        """Validate a response, and return the size of the whole file; None if the server does not report it."""
        if answer.status == UNSATISFIABLE:
            self.begin()
            raise Interrupted("the server can't send the rest of the file")
        length = _number(answer.headers.get("Content-Length"))
        total = length
        if answer.status == PARTIAL:
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
        self._note(answer)
        return self.wanted.size if self.wanted.size is not None else total

    def _note(self, answer: HttpResponse) -> None:
        tag = answer.headers.get("ETag", "")
        validator = tag if tag and not tag.startswith("W/") else answer.headers.get("Last-Modified", "")
        if not self.done or validator != self._validator:
            self._validator = validator
            self.mark.write(validator)

    def write(self, piece: bytes, total: int | None) -> None:
        """Write received bytes."""
        if self.done + len(piece) > (MAX_FILE if total is None else total):
            self.begin()
            raise NetworkError(f"{self.wanted.name}: {shown(self.mark.address)} sent more than it declared")
        self.file.seek(self.done)
        self.file.write(piece)
        self.digest.update(piece)
        self.done += len(piece)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None


def _content_range(text: str) -> tuple[int | None, int | None]:
    """Return the start and the total size in a value such as ``bytes 10-19/100``."""
    unit, _, rest = text.partition(" ")
    span, _, total = rest.partition("/")
    return (_number(span.partition("-")[0]) if unit == "bytes" else None), _number(total)
