"""The metadata of a wheel: from the file beside it (PEP 658), by range requests, or from the whole wheel."""

import contextlib
import hashlib
import io
import json
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from tenv.core.damaged_archives import DAMAGED_ZIP
from tenv.core.errors import CertificateError, NetworkError, StorageError
from tenv.core.file_stamps import stamps_folder
from tenv.core.files import read_regular, write_atomic
from tenv.core.http import Http, Interrupted, Unanswered
from tenv.core.names import METADATA
from tenv.core.untrusted import whole_number

_BLOCK = 1 << 16
_UNREAD: tuple[type[Exception], ...] = (NetworkError, Unanswered, Interrupted, StopIteration, *DAMAGED_ZIP)
_MOST = 1 << 24
"""The maximum size in bytes of the metadata of a wheel."""
_MISSES = 3
"""After how many wheels without a file beside them a server is not asked for another."""
_WHOLE = 1 << 24
"""The maximum size in bytes of a wheel that is fetched into memory from a server without range requests."""


def from_file(url: str) -> bytes | None:
    """Return the metadata of a local wheel; None if it can't be read."""
    with contextlib.suppress(StopIteration, *DAMAGED_ZIP):
        return _metadata(unquote(urlsplit(url).path))
    return None


def from_index(http: Http, url: str, bare: Counter[str] | None = None) -> bytes | None:
    """Return the metadata of a wheel of an index; None if neither the file beside it nor the wheel can be read.

    Args:
        http: The client.
        url: The address of the wheel.
        bare: The servers without such files, which are not asked for more: how many each did not have. It is updated.

    Raises:
        CertificateError: The server's certificate is not trusted.
    """
    server = urlsplit(url).netloc
    for read in (_beside, _within):
        if read is _beside and bare is not None and bare[server] >= _MISSES:
            continue
        try:
            found = read(http, url)
        except CertificateError:
            raise
        except _UNREAD:
            if read is _beside and bare is not None:
                bare[server] += 1
            continue
        if read is _beside and bare is not None:
            bare[server] = -sys.maxsize  # it has some
        return found
    return None


def _beside(http: Http, url: str) -> bytes:
    with http.get(f"{url}.metadata") as answer:
        content = answer.content()  # of a refusal, too: a connection that is read to the end serves the next request
        if answer.ok:
            return content
    raise FileNotFoundError(url)


def _within(http: Http, url: str) -> bytes:
    try:
        return _metadata(open_wheel(http, url))
    except _NoRangesError:  # uv fetched the whole wheel too, to resolve
        with tempfile.SpooledTemporaryFile(_WHOLE) as file, http.get(url) as answer:
            for piece in answer.pieces() if answer.ok else ():
                file.write(piece)
            return _metadata(file)


def _metadata(file: str | IO[bytes]) -> bytes:
    with zipfile.ZipFile(file) as wheel:
        found = next(info for info in wheel.infolist() if info.filename.endswith(METADATA))
        if found.file_size > _MOST:
            raise zipfile.BadZipFile(f"{found.filename} has {found.file_size} bytes")
        return wheel.read(found)


def _note(url: str, sha256: str) -> Path:
    """Return the file of a note. The address is a part of its name: an index may give any file any digest."""
    key = hashlib.sha256(f"{url} {sha256}".encode()).hexdigest()
    return stamps_folder() / f"requires-{key}.json"


def noted_requirements(url: str, sha256: str) -> tuple[str, ...] | None:
    """Return the noted requirements of a wheel; None where none were noted or can be read.

    A wheel never changes under its digest. A wrong note has the effect of a wrong answer of the index.
    """
    with contextlib.suppress(OSError, ValueError, RecursionError):
        rows = json.loads(read_regular(_note(url, sha256)))
        if isinstance(rows, list) and all(isinstance(row, str) for row in rows):
            return tuple(rows)
    return None


def note_requirements(url: str, sha256: str, requires: Sequence[str]) -> None:
    """Note the requirements of a wheel, if possible; without the note the index is asked again."""
    with contextlib.suppress(StorageError, OSError):
        write_atomic(_note(url, sha256), json.dumps(requires))


class _NoRangesError(OSError):
    """The server has no range requests, and the wheel is large."""


def open_wheel(http: Http, url: str) -> IO[bytes]:
    """Return a wheel of an index as a file that is read with range requests; a small one may be fetched whole.

    Raises:
        OSError: The server has no range requests, or not the file.
    """
    # The end of a wheel holds its list of files, and mostly its metadata. Some servers know no range from the end.
    for asked in (f"bytes=-{_BLOCK}", "bytes=0-0"):
        with http.get(url, {"Range": asked}) as answer:
            if answer.status == 416:  # noqa: PLR2004 (the wheel is shorter)
                continue
            if not answer.ok:
                raise FileNotFoundError(url)
            if answer.status == 206:  # noqa: PLR2004 (partial content)
                size = whole_number(answer.headers.get("Content-Range", "").rpartition("/")[2])
                if size is None:
                    raise _NoRangesError(url)
                end = answer.content() if asked != "bytes=0-0" else b""
                return io.BufferedReader(_Remote(http, url, size, end), _BLOCK)
            length = whole_number(answer.headers.get("Content-Length", ""))
            if length is not None and length < _WHOLE:
                return io.BytesIO(answer.content())
    raise _NoRangesError(url)


class _Remote(io.RawIOBase):
    """A file on a server with range requests."""

    def __init__(self, http: Http, url: str, size: int, end: bytes = b"") -> None:
        self.http, self.url, self.size, self.end, self.place = http, url, size, end, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.place, io.SEEK_END: self.size}[whence]
        return self.place

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        last = min(self.place + len(view), self.size) - 1
        if last < self.place:
            return 0
        if (known := self.place - self.size + len(self.end)) >= 0:
            data = self.end[known : known + len(view)]
        else:
            with self.http.get(self.url, {"Range": f"bytes={self.place}-{last}"}) as answer:
                if not answer.ok:
                    raise FileNotFoundError(self.url)
                data = answer.content()[: len(view)]
        view[: len(data)] = data
        self.place += len(data)
        return len(data)
