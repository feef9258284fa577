"""The interface of archive readers: entries and takers."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from tenv.core.dataclass import dataclass
from tenv.core.errors import ArchiveRefusedError
from tenv.core.unpack_limits import UnpackLimits

__all__ = ["CHUNK", "KINDS", "Entry", "Kind", "Reader", "Sink", "Taker", "damage", "kind_of", "pour"]

CHUNK = 1 << 20
"""The chunk size in bytes; memory use is a small multiple of it for any archive."""

_SUFFIXES = {
    ".tar.gz": "tar.gz",
    ".tgz": "tar.gz",
    ".tar.xz": "tar.xz",
    ".txz": "tar.xz",
    ".tar.bz2": "tar.bz2",
    ".tbz2": "tar.bz2",
    ".zip": "zip",
    ".7z": "7z",
    ".conda": "conda",
}
KINDS = tuple(dict.fromkeys(_SUFFIXES.values()))
"""The archive formats that tenv reads."""


_NOT_THE_SYSTEM = (None, errno.EINVAL)
"""Errors of decompressors, and of libraries that a damaged archive makes seek before the start of its file."""

_BROKEN = (EOFError, ValueError, OverflowError, RecursionError, MemoryError, IndexError)


class Kind(StrEnum):
    """The kind of an entry."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "symbolic link"
    SAME = "hard link"
    OTHER = "special file"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of an archive, unchecked.

    Attributes:
        name: Its name.
        kind: Its kind.
        mode: Its permission bits.
        size: Its declared size in bytes; None without one.
        target: The target of a link.
    """

    name: str
    kind: Kind
    mode: int = 0o644
    size: int | None = None
    target: str = ""


class Sink(Protocol):
    """Receives the bytes of one file."""

    def write(self, data: bytes, /) -> None:
        """Receive bytes."""

    def close(self) -> None:
        """End the file."""


class Taker(Protocol):
    """Receives the entries of an archive, or refuses them."""

    limits: UnpackLimits

    def file(self, entry: Entry) -> Sink | None:
        """Receive a file; return the sink for its bytes, or None to drop them."""

    def other(self, entry: Entry) -> None:
        """Receive an entry without content."""

    def passed(self, count: int) -> None:
        """Receive the number of decompressed bytes so far, including headers and padding."""


Reader = Callable[[Path, Taker], None]
"""A function that passes every entry of an archive to a taker, in the order of the archive."""


def kind_of(name: str) -> str:
    """Return the format of a file by its extension; empty if unknown."""
    return next((kind for suffix, kind in _SUFFIXES.items() if name.lower().endswith(suffix)), "")


def pour(read: Callable[[int], bytes], sink: Sink | None) -> None:
    """Pass all bytes of a file to its sink."""
    while data := read(CHUNK):
        if sink is not None:
            sink.write(data)
    if sink is not None:
        sink.close()


@contextmanager
def damage(path: Path, *kinds: type[Exception]) -> Iterator[None]:
    """Convert the errors of a format's library for a damaged archive into ArchiveRefusedError.

    Errors of the system, such as a full disk, have an errno and pass unchanged.
    """
    broken: tuple[type[Exception], ...] = (*_BROKEN, *kinds)
    try:
        yield
    except ArchiveRefusedError:
        raise
    except broken as error:
        if isinstance(error, OSError) and error.errno not in _NOT_THE_SYSTEM:
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ArchiveRefusedError(f"{path.name}: can't be unpacked: {reason}") from error
