"""Decompression in a thread, and a forward-only reader."""

import bz2
import contextlib
import lzma
import queue
import threading
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import IO, Protocol

from tenv.core.errors import ArchiveRefusedError
from tenv.sources.archives.formats.interface import CHUNK

__all__ = ["ERRORS", "ForwardReader", "decompressed", "raw_zstd"]

ERRORS = (lzma.LZMAError, zlib.error, OSError)
"""The errors of decompressors for a damaged stream; `bz2` raises OSError, the others have their own."""

_READ = 1 << 18
_AHEAD = 16


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    @property
    def needs_input(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Gzip:
    """`zlib` with the interface of the other two."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self._rest = b""

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._rest

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        out = self._inner.decompress(self._rest + data, max_length)
        self._rest = self._inner.unconsumed_tail
        return out


def _pieces(file: IO[bytes], make: Callable[[], _Decompressor]) -> Iterator[bytes]:
    """Yield the decompressed content of a file in chunks, stream after stream."""
    inner, waiting = make(), file.read(_READ)
    while True:
        data = b""
        if inner.needs_input:
            data, waiting = waiting, b""
            if not data:
                raise EOFError("unexpected end of the stream")
        out = inner.decompress(data, CHUNK)
        if out:
            yield out
        if inner.eof:
            waiting = inner.unused_data.lstrip(b"\0") or file.read(_READ).lstrip(
                b"\0"
            )  # padding between streams is allowed
            if not waiting:
                return
            inner = make()
        elif not waiting and inner.needs_input:
            waiting = file.read(_READ)


def raw_zstd(file: IO[bytes], memory: int) -> Iterator[bytes]:
    """Yield the decompressed content of a Zstandard file.

    Raises:
        ValueError: The file is damaged, or requires more than `memory` bytes.
    """
    import zstandard  # late: few archives use it

    try:
        reader = zstandard.ZstdDecompressor(max_window_size=memory).stream_reader(file, _READ, read_across_frames=True)
        while data := reader.read(CHUNK):
            yield data
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def decompressed(file: IO[bytes], kind: str, memory: int) -> Iterator[bytes]:
    """Yield the decompressed content of a ``gz``, ``xz``, ``bz2`` or ``zst`` file.

    Args:
        file: The file.
        kind: Its format.
        memory: The maximum memory of the decompressor in bytes.
    """
    makers: dict[str, Callable[[], _Decompressor]] = {
        "gz": _Gzip,
        "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=memory),
        "bz2": bz2.BZ2Decompressor,
    }
    return raw_zstd(file, memory) if kind == "zst" else _pieces(file, makers[kind])


class ForwardReader:
    """A forward-only file that can step back by one byte, as `tarfile` needs.

    A thread decompresses ahead, so decompressing and writing run in parallel.

    Attributes:
        last: The result of the last read.
    """

    def __init__(self, path: Path, pieces: Iterator[bytes], limit: int, passed: Callable[[int], None]) -> None:
        self._path = path
        self._limit = limit
        self._passed = passed
        self._queue: queue.Queue[bytes | BaseException | None] = queue.Queue(_AHEAD)
        self._stop = threading.Event()
        self._buffer = b""
        self._at = 0
        self._position = self._received = 0
        self._ended = False
        self.last = b""
        self._thread = threading.Thread(target=self._produce, args=(pieces,), daemon=True)
        self._thread.start()

    def _produce(self, pieces: Iterator[bytes]) -> None:
        try:
            for piece in pieces:
                if not self._put(piece):
                    return
            self._put(None)
        except BaseException as error:  # noqa: BLE001 (raised again in the thread of the reader)
            self._put(error)
        finally:
            if isinstance(pieces, Generator):
                pieces.close()

    def _put(self, item: bytes | BaseException | None) -> bool:
        while not self._stop.is_set():
            with contextlib.suppress(queue.Full):
                self._queue.put(item, timeout=0.1)
                return True
        return False

    def _more(self) -> bool:
        """Load the next chunk; the byte before what is unread stays, since `tarfile` steps back by one."""
        if self._ended:
            return False
        item = self._queue.get()
        if isinstance(item, BaseException):
            self._ended = True
            raise item
        if item is None:
            self._ended = True
            return False
        start = max(self._at - 1, 0)
        kept = self._buffer[start:]
        self._at -= start
        self._buffer = kept + item
        self._received += len(item)
        self._passed(self._received)
        return True

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, fewer at the end of the file."""
        if size > self._limit or size < 0:
            raise ArchiveRefusedError(f"{self._path.name}: a header requires {size} bytes of memory")
        parts = []
        wanted = size
        while wanted:
            have = self._buffer[self._at : self._at + wanted]
            if have:
                parts.append(have)
                self._at += len(have)
                wanted -= len(have)
            elif not self._more():
                break
        self.last = parts[0] if len(parts) == 1 else b"".join(parts)
        self._position += len(self.last)
        return self.last

    def peek(self, position: int, size: int) -> bytes:
        """Move forward to a position, and return the `size` bytes from there without passing them; fewer at the end."""
        at = self._at + position - self._position
        if at < self._at or at + size > len(self._buffer):
            self.seek(position)
            while len(self._buffer) - self._at < size and self._more():
                pass
        else:
            self._at, self._position = at, position
        return self._buffer[self._at : self._at + size]

    def tell(self) -> int:
        """Return the position in bytes."""
        return self._position

    def seek(self, position: int) -> int:
        """Move forward, or back by one byte."""
        back = self._position - position
        if 0 < back <= self._at:
            self._at -= back
            self._position = position
            return position
        if back > 0:
            raise ArchiveRefusedError(f"{self._path.name}: a header points backwards")
        while self._position < position and self.read(min(CHUNK, position - self._position)):
            pass
        return self._position

    def close(self) -> None:
        """Stop the thread."""
        self._stop.set()
        with contextlib.suppress(queue.Empty):
            while True:
                self._queue.get_nowait()
        self._thread.join()
