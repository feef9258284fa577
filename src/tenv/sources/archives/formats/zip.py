"""Reads zip archives, and conda packages, which are zips of tar archives."""

import stat
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO

from tenv.core.errors import ArchiveRefusedError
from tenv.sources.archives.formats.interface import CHUNK, Entry, Kind, Taker, damage, pour
from tenv.sources.archives.formats.streams import decompressed
from tenv.sources.archives.formats.tar import read_stream

__all__ = ["read_conda", "read_zip"]

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
_ENCRYPTED = 0x1
_MAX_TARGET = 4096
_MAX_DIRECTORY = 64 << 20
_ZIP64 = 0xFFFFFFFF
_UNIX = 3
_ERRORS = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    NotImplementedError,
    RuntimeError,
    struct.error,
    OSError,
)


def read_zip(path: Path, taker: Taker) -> None:
    """Pass every entry of a zip archive to a taker.

    Raises:
        ArchiveRefusedError: The archive is damaged, or the taker refuses it.
    """
    with path.open("rb") as file, damage(path, *_ERRORS):
        _check_directory(path, file)
        with zipfile.ZipFile(file) as archive:
            _check_count(path, archive, taker)
            passed = 0
            for info in archive.infolist():
                passed += _take(path, archive, info, taker)
                taker.passed(passed)


def _check_directory(path: Path, file: IO[bytes]) -> None:
    """Raise an error for a central directory that would fill the memory: `zipfile` reads it at once."""
    size = file.seek(0, 2)
    file.seek(max(0, size - (1 << 16) - 22))
    tail = file.read()
    at = tail.rfind(b"PK\5\6")
    if 0 <= at <= len(tail) - 22:
        listed = struct.unpack_from("<L", tail, at + 12)[0]
        if listed > _MAX_DIRECTORY and (listed != _ZIP64 or size > _MAX_DIRECTORY):
            raise ArchiveRefusedError(f"{path.name}: its central directory is too large")
    file.seek(0)


def _check_count(path: Path, archive: zipfile.ZipFile, taker: Taker) -> None:
    """Raise an error for too many entries, before any is written."""
    names = archive.infolist()
    if len(names) > taker.limits.entries:
        taker.limits.check(path.name, path.stat().st_size, 0, len(names))


def _take(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, taker: Taker) -> int:
    if info.flag_bits & _ENCRYPTED:
        raise ArchiveRefusedError(f"{path.name}: {info.orig_filename!r} is encrypted")
    if info.compress_type not in _METHODS:
        raise ArchiveRefusedError(f"{path.name}: {info.orig_filename!r} has an unsupported compression")
    entry = _entry(info)
    if entry.kind is Kind.FILE:
        sink = taker.file(entry)
        with archive.open(info) as data:
            pour(data.read, sink)
    elif entry.kind is Kind.LINK:
        if info.file_size > _MAX_TARGET:
            raise ArchiveRefusedError(f"{path.name}: {entry.name!r} is a link with a too long target")
        target = archive.read(info).decode("utf-8", "surrogateescape")
        taker.other(Entry(entry.name, entry.kind, target=target))
    else:
        taker.other(entry)
    return info.file_size


def _entry(info: zipfile.ZipInfo) -> Entry:
    name = info.orig_filename  # `filename` is cut at a null byte
    mode = info.external_attr >> 16 if info.create_system == _UNIX else 0
    kinds = {stat.S_IFLNK: Kind.LINK, stat.S_IFDIR: Kind.FOLDER, stat.S_IFREG: Kind.FILE, 0: Kind.FILE}
    kind = kinds.get(stat.S_IFMT(mode), Kind.OTHER)
    if kind is Kind.FILE and name.endswith("/"):
        kind = Kind.FOLDER
    return Entry(name, kind, stat.S_IMODE(mode) or 0o644, info.file_size)


def read_conda(path: Path, taker: Taker) -> None:
    """Pass every entry of a conda package to a taker: its content and its ``info`` folder.

    Raises:
        ArchiveRefusedError: The archive is damaged, or the taker refuses it.
    """
    with path.open("rb") as file, damage(path, *_ERRORS):
        _check_directory(path, file)
        with zipfile.ZipFile(file) as outer:
            names = [info.filename for info in outer.infolist()]
            parts = [name for name in names if name.startswith(("pkg-", "info-")) and name.endswith(".tar.zst")]
            if sorted(name.split("-")[0] for name in parts) != ["info", "pkg"]:
                raise ArchiveRefusedError(f"{path.name}: is not a conda package")
            for name in sorted(parts, reverse=True):
                if outer.getinfo(name).compress_type != zipfile.ZIP_STORED:
                    raise ArchiveRefusedError(f"{path.name}: has {name} twice")
                with outer.open(name) as inner:
                    read_stream(path, decompressed(inner, "zst", min(taker.limits.memory, 128 * CHUNK)), taker)
