"""Readers of tar and zip archives: each passes its entries, unchecked, to a `Taker`.

Python's own tarfile and zipfile do the reading; nothing here writes a file. Memory use is small for any archive: a
decompressor, a header and the directory of a zip have limits.
"""

import bz2
import errno
import gzip
import lzma
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, Protocol, cast

from tenv.core.damaged_archives import DAMAGED_ZIP
from tenv.core.dataclass import dataclass
from tenv.core.errors import ArchiveRefusedError
from tenv.core.unpack_limits import UnpackLimits

DAMAGE: tuple[type[Exception], ...] = (tarfile.TarError, *DAMAGED_ZIP)
"""The errors of Python's archive modules for a damaged file. `bz2` and `gzip` raise OSError, without an errno."""

_NOT_THE_SYSTEM = (None, errno.EINVAL)
"""Errors of decompressors, and of libraries that a damaged archive makes seek before the start of its file."""

_CHUNK = 1 << 20
_PIECE = 1 << 15
"""Bytes that are decompressed at a time; the rest of a piece is copied for each header."""

_HEADER = _CHUNK
"""The maximum size of one read in bytes, such as an extended header; names and times need a few hundred."""

_CONDA_MEMORY = 128 << 20
_MAX_TARGET = 4096
_MAX_DIRECTORY = 64 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
_ENCRYPTED = 0x1
_ZIP64 = 0xFFFFFFFF
_UNIX = 3


class Kind(StrEnum):
    """The kind of an entry."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "symbolic link"
    SAME = "hard link"
    OTHER = "special file"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of an archive, unchecked."""

    name: str
    """Its name."""
    kind: Kind
    """Its kind."""
    mode: int = 0o644
    """Its permission bits."""
    size: int | None = None
    """Its declared size in bytes; None without one."""
    target: str = ""
    """The target of a link."""


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
"""A function that passes every entry of an archive to a taker, in the order of the archive.

It raises ArchiveRefusedError for an archive that is damaged or that the taker refuses.
"""


@contextmanager
def damage(path: Path, *more: type[Exception]) -> Iterator[None]:
    """Convert the errors of an archive's library for a damaged file into ArchiveRefusedError.

    Errors of the system, such as a full disk, have an errno and pass unchanged.

    Args:
        path: The archive.
        more: Errors of the library beside `DAMAGE`.
    """
    broken = (*DAMAGE, *more)
    try:
        yield
    except ArchiveRefusedError:
        raise
    except broken as error:
        if isinstance(error, OSError) and error.errno not in _NOT_THE_SYSTEM:
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ArchiveRefusedError(f"{path.name}: can't be unpacked: {reason}") from error


def _pour(file: IO[bytes], sink: Sink | None) -> None:
    """Pass all bytes of a file to its sink."""
    while data := file.read(_CHUNK):
        if sink is not None:
            sink.write(data)
    if sink is not None:
        sink.close()


# Tar archives


def decompressed(file: IO[bytes], packing: str, memory: int) -> Iterator[bytes]:
    """Yield the decompressed content of a file in small pieces; raises one of `DAMAGE` for a damaged file.

    Args:
        file: The file.
        packing: ``gz``, ``xz``, ``bz2`` or ``zst``.
        memory: The maximum memory of the decompressor in bytes.
    """
    if packing == "xz":
        return _unxz(file, memory)
    if packing == "zst":
        return _unzstd(file, memory)
    opened = gzip.GzipFile(fileobj=file) if packing == "gz" else bz2.BZ2File(file)
    return iter(lambda: opened.read(_PIECE), b"")


def _unxz(file: IO[bytes], memory: int) -> Iterator[bytes]:
    """Yield the content of an xz file, stream after stream; `lzma.open` has no limit on memory."""
    rest = file.read(_PIECE)
    while rest:
        inner = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=memory)
        while not inner.eof:
            if inner.needs_input and not (rest := rest or file.read(_PIECE)):
                raise EOFError("unexpected end of the stream")
            data, rest = (rest, b"") if inner.needs_input else (b"", rest)
            yield inner.decompress(data, _PIECE)
        rest = (inner.unused_data or file.read(_PIECE)).lstrip(b"\0")  # padding between streams is allowed


def _unzstd(file: IO[bytes], memory: int) -> Iterator[bytes]:
    import zstandard  # late: few archives use it

    try:
        reader = zstandard.ZstdDecompressor(max_window_size=memory).stream_reader(file, read_across_frames=True)
        while data := reader.read(_PIECE):
            yield data
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


class _Forward:
    """Decompressed pieces as the file that `tarfile` reads from its start to its end.

    Attributes:
        last: The result of the last read.
    """

    def __init__(self, pieces: Iterator[bytes], passed: Callable[[int], None]) -> None:
        self.last = b""
        self._pieces, self._passed = pieces, passed
        self._rest = b""
        self._place = self._count = 0

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer at the end; `tarfile` reads an extended header of any size at once."""
        if not 0 <= size <= _HEADER:
            raise tarfile.ReadError(f"a header requires {size} bytes of memory")
        parts, left = [], size
        while left and (self._rest or self._more()):
            parts.append(self._rest[:left])
            self._rest = self._rest[left:]
            left -= len(parts[-1])
        self.last = b"".join(parts)
        self._place += len(self.last)
        return self.last

    def _more(self) -> bool:
        self._rest = next(filter(None, self._pieces), b"")
        self._count += len(self._rest)
        self._passed(self._count)
        return bool(self._rest)

    def tell(self) -> int:
        """Return the position in bytes."""
        return self._place

    def seek(self, place: int) -> int:
        """Move forward; a position behind the end is not reached."""
        if place < self._place:
            raise tarfile.ReadError("a header points backwards")
        while self._place < place and self.read(min(_CHUNK, place - self._place)):
            pass
        return self._place


def tar_members(
    pieces: Iterator[bytes], passed: Callable[[int], None]
) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Yield each member of a tar archive, and the archive, from which its content can be read until the next one.

    Args:
        pieces: The decompressed archive.
        passed: Receives the number of decompressed bytes so far, including headers and padding.
    """
    stream = _Forward(pieces, passed)
    with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r:", encoding="utf-8") as archive:
        known: list[tarfile.TarInfo] = vars(archive)["members"]
        while member := archive.next():
            yield archive, member
            known.clear()  # no lookup by name happens, and memory must not grow with the archive
    if stream.last.strip(b"\0"):  # `tarfile` takes a broken header for the end
        raise tarfile.ReadError("it has a damaged header")


def read_tar(path: Path, taker: Taker, packing: str) -> None:
    """Read a tar archive with `gz`, `xz` or `bz2` compression; a `Reader` with the compression set."""
    with path.open("rb") as file, damage(path):
        _read_members(decompressed(file, packing, taker.limits.memory), taker)


def _read_members(pieces: Iterator[bytes], taker: Taker) -> None:
    for archive, member in tar_members(pieces, taker.passed):
        entry = _of_tar(member)
        if entry.kind is not Kind.FILE:
            taker.other(entry)
            continue
        sink = taker.file(entry)
        data = archive.extractfile(member)
        if data is None:
            raise tarfile.ReadError(f"{member.name!r} has no content")
        _pour(data, sink)


def _of_tar(member: tarfile.TarInfo) -> Entry:
    if member.isreg():
        return Entry(member.name, Kind.FILE, member.mode, member.size)
    if member.isdir():
        return Entry(member.name, Kind.FOLDER, member.mode)
    if member.issym():
        return Entry(member.name, Kind.LINK, target=member.linkname)
    if member.islnk():
        return Entry(member.name, Kind.SAME, member.mode, target=member.linkname)
    return Entry(member.name, Kind.OTHER)


# Zip archives


def read_zip(path: Path, taker: Taker) -> None:
    """Read a zip archive; a `Reader`."""
    with _zip(path) as archive:
        if len(archive.infolist()) > taker.limits.entries:  # before any is written
            taker.limits.check(path.name, path.stat().st_size, 0, len(archive.infolist()))
        passed = 0
        for info in archive.infolist():
            _take(path, archive, info, taker)
            passed += info.file_size
            taker.passed(passed)


def read_conda(path: Path, taker: Taker) -> None:
    """Read a conda package, a zip of tar archives: its content, then its ``info`` folder; a `Reader`."""
    with _zip(path) as outer:
        names = [info.filename for info in outer.infolist()]
        parts = [name for name in names if name.startswith(("pkg-", "info-")) and name.endswith(".tar.zst")]
        if sorted(name.split("-")[0] for name in parts) != ["info", "pkg"]:
            raise ArchiveRefusedError(f"{path.name}: is not a conda package")
        for name in sorted(parts, reverse=True):
            if outer.getinfo(name).compress_type != zipfile.ZIP_STORED:
                raise ArchiveRefusedError(f"{path.name}: has {name} twice")
            with outer.open(name) as inner:
                _read_members(decompressed(inner, "zst", min(taker.limits.memory, _CONDA_MEMORY)), taker)


@contextmanager
def _zip(path: Path) -> Iterator[zipfile.ZipFile]:
    with path.open("rb") as file, damage(path):
        _check_directory(path, file)
        with zipfile.ZipFile(file) as archive:
            yield archive


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


def _take(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, taker: Taker) -> None:
    if info.flag_bits & _ENCRYPTED:
        raise ArchiveRefusedError(f"{path.name}: {info.orig_filename!r} is encrypted")
    if info.compress_type not in _METHODS:
        raise ArchiveRefusedError(f"{path.name}: {info.orig_filename!r} has an unsupported compression")
    entry = _of_zip(info)
    if entry.kind is Kind.FILE:
        sink = taker.file(entry)
        with archive.open(info) as data:
            _pour(data, sink)
    elif entry.kind is Kind.LINK:
        if info.file_size > _MAX_TARGET:
            raise ArchiveRefusedError(f"{path.name}: {entry.name!r} is a link with a too long target")
        target = archive.read(info).decode("utf-8", "surrogateescape")
        taker.other(Entry(entry.name, entry.kind, target=target))
    else:
        taker.other(entry)


def _of_zip(info: zipfile.ZipInfo) -> Entry:
    name = info.orig_filename  # `filename` is cut at a null byte
    mode = info.external_attr >> 16 if info.create_system == _UNIX else 0
    kinds = {stat.S_IFLNK: Kind.LINK, stat.S_IFDIR: Kind.FOLDER, stat.S_IFREG: Kind.FILE, 0: Kind.FILE}
    kind = kinds.get(stat.S_IFMT(mode), Kind.OTHER)
    if kind is Kind.FILE and name.endswith("/"):
        kind = Kind.FOLDER
    return Entry(name, kind, stat.S_IMODE(mode) or 0o644, info.file_size)
