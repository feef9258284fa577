"""tar archives, packed with gzip, xz, bzip2 or Zstandard."""

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from tenv.core.errors import ArchiveRefusedError
from tenv.sources.archives.formats.interface import CHUNK, Entry, Kind, Taker, damage, pour
from tenv.sources.archives.formats.streams import ERRORS, ForwardReader, decompressed

__all__ = ["read_stream", "read_tar"]

_HEADER = 8 * CHUNK
"""The longest extended header that is read: names and times, a few hundred bytes in practice."""


def read_tar(path: Path, taker: Taker, packing: str) -> None:
    """Hand every entry of a tar archive to a taker; it is packed as `gz`, `xz` or `bz2`.

    Raises:
        ArchiveRefusedError: It is damaged, or the taker refuses it.
    """
    with path.open("rb") as file, damage(path, *ERRORS):
        read_stream(path, decompressed(file, packing, taker.limits.memory), taker)


def read_stream(path: Path, pieces: Iterator[bytes], taker: Taker) -> None:
    """Hand every entry of an unpacked tar stream to a taker.

    Args:
        path: The file that it is in, for messages.
        pieces: The bytes.
        taker: Who takes them.
    """
    forward = ForwardReader(path, pieces, _HEADER, taker.passed)
    try:
        with damage(path, tarfile.TarError):
            _read(path, forward, taker)
    finally:
        forward.close()


def _read(path: Path, forward: ForwardReader, taker: Taker) -> None:
    with tarfile.open(fileobj=cast("IO[bytes]", forward), mode="r:", encoding="utf-8") as archive:
        known: list[tarfile.TarInfo] = vars(archive)["members"]
        while member := archive.next():
            _take(path, archive, member, taker)
            known.clear()  # nothing is looked up by name, and memory must not grow with the archive
    if forward.last.strip(b"\0"):  # `tarfile` takes a broken header for the end
        raise ArchiveRefusedError(f"{path.name}: a header in it is broken")


def _take(path: Path, archive: tarfile.TarFile, member: tarfile.TarInfo, taker: Taker) -> None:
    entry = _entry(member)
    if entry.kind is not Kind.FILE:
        taker.other(entry)
        _filter(path, member)
        return
    sink = taker.file(entry)
    _filter(path, member)
    data = archive.extractfile(member)
    if data is None:
        raise ArchiveRefusedError(f"{path.name}: {member.name!r} has no bytes")
    pour(data.read, sink)


def _filter(path: Path, member: tarfile.TarInfo) -> None:
    """Ask the standard library's own filter too, which knows of tricks that came up later than this file."""
    try:
        tarfile.data_filter(member, str(path.parent))
    except tarfile.FilterError as error:
        raise ArchiveRefusedError(f"{path.name}: {error}") from error


def _entry(member: tarfile.TarInfo) -> Entry:
    if member.isreg():
        return Entry(member.name, Kind.FILE, member.mode, member.size)
    if member.isdir():
        return Entry(member.name, Kind.FOLDER, member.mode)
    if member.issym():
        return Entry(member.name, Kind.LINK, target=member.linkname)
    if member.islnk():
        return Entry(member.name, Kind.SAME, member.mode, target=member.linkname)
    return Entry(member.name, Kind.OTHER)
