"""Reads tar archives with gzip, xz, bzip2 or Zstandard compression."""

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from tenv.core.errors import ArchiveRefusedError
from tenv.sources.archives.formats.interface import CHUNK, Entry, Kind, Taker, damage, pour
from tenv.sources.archives.formats.streams import ERRORS, ForwardReader, decompressed

__all__ = ["read_stream", "read_tar"]

_HEADER = 8 * CHUNK
"""The maximum size of an extended header in bytes; names and times need a few hundred."""


def read_tar(path: Path, taker: Taker, packing: str) -> None:
    """Pass every entry of a tar archive with `gz`, `xz` or `bz2` compression to a taker.

    Raises:
        ArchiveRefusedError: The archive is damaged, or the taker refuses it.
    """
    with path.open("rb") as file, damage(path, *ERRORS):
        read_stream(path, decompressed(file, packing, taker.limits.memory), taker)


def read_stream(path: Path, pieces: Iterator[bytes], taker: Taker) -> None:
    """Pass every entry of a decompressed tar stream to a taker.

    Args:
        path: The archive, for messages.
        pieces: The decompressed bytes.
        taker: Receives the entries.
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
            known.clear()  # no lookup by name happens, and memory must not grow with the archive
    if forward.last.strip(b"\0"):  # `tarfile` treats a broken header as the end
        raise ArchiveRefusedError(f"{path.name}: has a damaged header")


def _take(path: Path, archive: tarfile.TarFile, member: tarfile.TarInfo, taker: Taker) -> None:
    entry = _entry(member)
    if entry.kind is not Kind.FILE:
        taker.other(entry)
        return
    sink = taker.file(entry)
    data = archive.extractfile(member)
    if data is None:
        raise ArchiveRefusedError(f"{path.name}: {member.name!r} has no content")
    pour(data.read, sink)


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
