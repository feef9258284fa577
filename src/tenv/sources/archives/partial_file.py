"""One download: what is there of a file, whether what comes is a part of it, and how long that is waited for."""

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenv.core.errors import HashMismatchError, NetworkError
from tenv.core.http import HttpResponse, Interrupted
from tenv.core.http_settings import Patience, shown

__all__ = ["MAX_FILE", "PARTIAL", "UNSATISFIABLE", "Drip", "PartialFile", "RemoteFile", "ResumeNote"]

MAX_FILE = 64 << 30
"""Bytes of a file that are taken at most."""

PARTIAL, UNSATISFIABLE = 206, 416
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file to be had.

    Attributes:
        name: What messages call it.
        url: Its canonical address.
        sha256: The digest that it must have; empty when nobody knows one.
        size: Its bytes; None when nobody knows.
    """

    name: str
    url: str
    sha256: str = ""
    size: int | None = None


class Drip:
    """Ends a download that hardly moves."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._since = time.monotonic()
        self._count = 0

    def count(self, size: int) -> None:
        """Count bytes that came; raises Interrupted when there were too few for too long."""
        self._count += size
        passed = time.monotonic() - self._since
        if passed > self._patience.window:
            if self._count < self._patience.slow * passed:
                raise Interrupted(f"only {self._count} bytes came in {passed:.0f} s")
            self._since, self._count = time.monotonic(), 0


@dataclass(frozen=True, slots=True)
class ResumeNote:
    """A note beside a part of a file: which address it is from, and which state of it.

    Attributes:
        path: The note.
        address: The address that is asked now.
    """

    path: Path
    address: str

    def validator(self) -> str:
        """Return the entity tag or date of the part that is there, if it came from this address."""
        try:
            address, _, validator = self.path.read_text("utf-8").partition("\n")
        except (OSError, ValueError):
            return ""
        return validator.strip() if address == shown(self.address) else ""

    def write(self, validator: str) -> None:
        """Note where the part is from."""
        self.path.write_text(f"{shown(self.address)}\n{validator}\n", "utf-8")

    def forget(self) -> None:
        """Take the note away."""
        self.path.unlink(missing_ok=True)


class PartialFile:
    """What is there of a file, and its digest."""

    def __init__(self, file: Any, wanted: RemoteFile, mark: ResumeNote) -> None:
        self.file = file
        self.wanted = wanted
        self.mark = mark
        self.digest = hashlib.sha256()
        self.done = 0
        self._validator = mark.validator()

    def resume(self) -> None:
        """Take in what an earlier command has left; without a digest to compare with, only with a validator."""
        if not self.wanted.sha256 and not self._validator:
            self.begin()
            return
        while piece := self.file.read(_CHUNK):
            self.digest.update(piece)
            self.done += len(piece)
        if self.wanted.size is not None and self.done > self.wanted.size:
            self.begin()

    def begin(self) -> None:
        """Drop what is there."""
        self.file.seek(0)
        self.file.truncate()
        self.digest = hashlib.sha256()
        self.done = 0

    def is_whole(self) -> bool:
        """Tell whether nothing is missing, as far as that is known."""
        if self.wanted.size is not None:
            return self.done == self.wanted.size
        return self.done > 0 and self.digest.hexdigest() == self.wanted.sha256

    def headers(self) -> dict[str, str]:
        """Return what is asked for: the rest, if it is still the rest of the same file."""
        if not self.done:
            return {}
        headers = {"Range": f"bytes={self.done}-"}
        return headers | ({"If-Range": self._validator} if self._validator else {})

    def accept(self, answer: HttpResponse) -> int | None:
        """Prepare for the bytes of an answer, and return how many the whole file has, None when it is not told."""
        if answer.status == UNSATISFIABLE:
            self.begin()
            raise Interrupted("the server does not know the rest of the file")
        length = _number(answer.headers.get("Content-Length"))
        total = length
        if answer.status == PARTIAL:
            start, total = _content_range(answer.headers.get("Content-Range", ""))
            if start != self.done:
                self.begin()
                raise Interrupted("the server sends another part than the one that was asked for")
        elif self.done:
            self.begin()  # it knows no ranges, or the file is another one now
        if self.wanted.size is not None and total not in (None, self.wanted.size):
            raise HashMismatchError(
                f"{self.wanted.name}: {shown(answer.url)} has {total} bytes, {self.wanted.size} are wanted",
                hint="the file was changed where it is published or on the way; nothing of it was used",
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
        """Take some bytes."""
        if self.done + len(piece) > (MAX_FILE if total is None else total):
            self.begin()
            raise NetworkError(f"{self.wanted.name}: {shown(self.mark.address)} sends more than it declares")
        self.file.seek(self.done)
        self.file.write(piece)
        self.digest.update(piece)
        self.done += len(piece)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None


def _content_range(text: str) -> tuple[int | None, int | None]:
    """Return where a part begins and how long the whole is, of ``bytes 10-19/100``."""
    unit, _, rest = text.partition(" ")
    span, _, total = rest.partition("/")
    return (_number(span.partition("-")[0]) if unit == "bytes" else None), _number(total)
