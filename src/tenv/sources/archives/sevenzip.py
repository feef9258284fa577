"""Reads 7z archives with py7zr: the format of MAGMA and MKL for Windows."""

import stat
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from tenv.core.errors import ArchiveRefusedError, UsageError
from tenv.sources.archives.readers import Entry, Kind, Sink, Taker, damage

_MAX_TARGET = 4096


def read_7z(path: Path, taker: Taker) -> None:
    """Read a 7z archive; a `Reader`. It raises UsageError where py7zr is not installed."""
    try:
        import py7zr  # late: an optional dependency
        from py7zr.exceptions import ArchiveError
    except ImportError:
        from tenv.core.own_distribution import extra_hint  # late: only where the extra is missing

        raise UsageError(
            f"{path.name}: unpacking 7z archives requires py7zr, which is not installed", hint=extra_hint("7z", "py7zr")
        ) from None
    errors = (ArchiveError, TypeError, AttributeError, AssertionError)
    # A file object, since py7zr would write from several threads with a name.
    with path.open("rb") as file, damage(path, *errors), py7zr.SevenZipFile(file) as archive:
        if archive.needs_password():
            raise ArchiveRefusedError(f"{path.name}: is encrypted")
        _read(path, archive, taker)


def _read(path: Path, archive: Any, taker: Taker) -> None:
    """Pass all entries for the checks, then unpack the bytes in py7zr's order."""
    waiting = _listed(path, archive, taker)
    sinks: dict[str, Sink | None] = {}
    for name, entry in waiting.items():
        if entry.kind is Kind.FILE:
            sinks[PurePosixPath(name).as_posix()] = taker.file(entry)
    links = _extract(archive, sinks)
    for sink in filter(None, sinks.values()):  # py7zr does not report empty files
        sink.close()
    for name in (name for name, entry in waiting.items() if entry.kind is Kind.LINK):
        target = links.get(PurePosixPath(name).as_posix(), b"")
        taker.other(Entry(name, Kind.LINK, target=target.decode("utf-8", "surrogateescape")))


def _listed(path: Path, archive: Any, taker: Taker) -> dict[str, Entry]:
    """Return the files and links of an archive; entries without content go to the taker at once."""
    waiting: dict[str, Entry] = {}
    total = 0
    for info in archive.files:
        entry = _entry(info)
        if entry.kind in (Kind.FILE, Kind.LINK):
            if entry.name in waiting:
                raise ArchiveRefusedError(f"{path.name}: {entry.name!r} occurs twice")
            waiting[entry.name] = entry
        else:
            taker.other(entry)
        total += entry.size or 0
        taker.passed(total)
    long = next(
        (name for name, entry in waiting.items() if entry.kind is Kind.LINK and (entry.size or 0) > _MAX_TARGET), ""
    )
    if long:
        raise ArchiveRefusedError(f"{path.name}: {long!r} is a link with a too long target")
    return waiting


def _entry(info: Any) -> Entry:
    mode = info.posix_mode or 0
    size = int(info.uncompressed) if not info.is_directory else 0
    if info.is_symlink or info.is_junction:
        return Entry(info.filename, Kind.LINK, size=size)
    if info.is_directory:
        return Entry(info.filename, Kind.FOLDER, mode)
    if info.is_socket or stat.S_IFMT(info.st_fmt or 0) not in (0, stat.S_IFREG):
        return Entry(info.filename, Kind.OTHER)
    return Entry(info.filename, Kind.FILE, mode or 0o644, size)


def _extract(archive: Any, sinks: "dict[str, Sink | None]") -> dict[str, bytes]:
    """Unpack every file into its sink, and return the targets of links."""
    from py7zr.io import Py7zIO, WriterFactory

    links: dict[str, bytes] = {}

    class Into(Py7zIO):
        """Passes the output of py7zr to a function."""

        def __init__(self, write: Callable[[bytes], object], close: Callable[[], None]) -> None:
            self._write, self._close, self._size = write, close, 0

        def write(self, s: bytes | bytearray) -> int:
            self._write(bytes(s))
            self._size += len(s)
            return len(s)

        def read(self, size: int | None = None) -> bytes:
            return b""

        def seek(self, offset: int, whence: int = 0) -> int:
            return 0

        def flush(self) -> None:
            """Do nothing."""

        def size(self) -> int:
            return self._size

        def close(self) -> None:
            self._close()

    class Factory(WriterFactory):
        """Returns the sink for a name."""

        def create(self, filename: str) -> Py7zIO:
            if filename not in sinks:
                kept: list[bytes] = []
                return Into(kept.append, lambda: links.__setitem__(filename, b"".join(kept)))
            sink = sinks[filename]
            return Into(sink.write, sink.close) if sink else Into(lambda _: None, lambda: None)

    archive.extract(factory=Factory())
    return links
