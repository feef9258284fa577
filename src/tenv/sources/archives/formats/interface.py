"""What the readers of archives share: an entry, and who takes it."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from tenv.core.errors import ArchiveRefusedError

__all__ = ["CHUNK", "KINDS", "ArchiveLimits", "Entry", "Kind", "Reader", "Sink", "Taker", "damage", "kind_of", "pour"]

CHUNK = 1 << 20
"""How many bytes are handled at once; what is held in memory is a small multiple of it, whatever the archive's size."""

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
"""The ways of packing that tenv can read."""


_NOT_THE_SYSTEM = (None, errno.EINVAL)
"""Errors of a decompressor, and of a library that an archive sends to a place before the beginning of its file."""

_BROKEN = (EOFError, ValueError, OverflowError, RecursionError, MemoryError, IndexError)


class Kind(StrEnum):
    """What an entry is."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "symbolic link"
    SAME = "hard link"
    OTHER = "special file"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of an archive, as it is written there.

    Attributes:
        name: Its name.
        kind: What it is.
        mode: Its permission bits.
        size: Its bytes as the archive declares them; None when it does not.
        target: What a link leads to.
    """

    name: str
    kind: Kind
    mode: int = 0o644
    size: int | None = None
    target: str = ""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """What an archive may hold.

    The largest file in NVIDIA's redist of today unpacks to some GiB, about ten times its packed size.

    Attributes:
        entries: Entries at most.
        bytes: Bytes at most, unpacked.
        ratio: Unpacked bytes for each packed one, at most.
        free: Unpacked bytes up to which the ratio is not looked at.
        path: Bytes of a name, at most.
        depth: Folders in a name, at most.
        memory: Bytes that a decompressor or a header may ask for.
    """

    entries: int = 200_000
    bytes: int = 64 << 30
    ratio: int = 200
    free: int = 64 << 20
    path: int = 1024
    depth: int = 64
    memory: int = 256 << 20


class Sink(Protocol):
    """Takes the bytes of one file."""

    def write(self, data: bytes, /) -> None:
        """Take some bytes."""

    def close(self) -> None:
        """Know that these were all."""


class Taker(Protocol):
    """Takes the entries of an archive, or refuses them."""

    limits: ArchiveLimits

    def file(self, entry: Entry) -> Sink | None:
        """Take a file; its bytes go to what is returned, or nowhere when that is None."""

    def other(self, entry: Entry) -> None:
        """Take an entry without bytes of its own."""

    def passed(self, count: int) -> None:
        """Know how many bytes have come out of the decompressor so far, headers and padding too."""


Reader = Callable[[Path, Taker], None]
"""Hands every entry of an archive to a taker, in the order of the archive."""


def kind_of(name: str) -> str:
    """Return how a file is packed, by the end of its name; an empty string when that says nothing."""
    return next((kind for suffix, kind in _SUFFIXES.items() if name.lower().endswith(suffix)), "")


def pour(read: Callable[[int], bytes], sink: Sink | None) -> None:
    """Hand all bytes of a file to its sink."""
    while data := read(CHUNK):
        if sink is not None:
            sink.write(data)
    if sink is not None:
        sink.close()


@contextmanager
def damage(path: Path, *kinds: type[Exception]) -> Iterator[None]:
    """Turn what the library of a format raises for a broken archive into our own error.

    What the system refuses (a full disk) is none of that: it has an error number.
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
