"""Unpacks an archive into a new folder without trusting its content.

The reader of the format passes every entry to a `Staging`, which checks its name, link, mode and size before it writes
a byte, whatever the library of the format checks, and writes it to a temporary folder. Symbolic links are made last, so
no file can be written through one. The folder is renamed when it is complete.
"""

import contextlib
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import field
from functools import partial
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.errors import ArchiveRefusedError
from tenv.core.files import storage_errors
from tenv.core.unpack_limits import UnpackLimits
from tenv.sources.archives.member_names import Clashes, check_target, check_way, parts_of
from tenv.sources.archives.readers import Entry, Kind, Reader, Sink, read_conda, read_tar, read_zip

_LICENCE = re.compile(r"(licen[cs]e|copying|eula)([._-].*)?", re.IGNORECASE)
_SPECIAL_BITS = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX
_TARS = ("tar.gz", "tar.xz", "tar.bz2")


def reader_of(kind: str) -> Reader:
    """Return the reader of a format.

    Raises:
        ArchiveRefusedError: tenv has no reader for the format.
    """
    if kind in _TARS:
        return partial(read_tar, packing=kind.removeprefix("tar."))
    if kind in ("zip", "conda"):
        return read_zip if kind == "zip" else read_conda
    if kind == "7z":
        from tenv.sources.archives.sevenzip import read_7z  # late: an optional dependency

        return read_7z
    raise ArchiveRefusedError(f"tenv can't unpack `{kind}` archives")


@dataclass(frozen=True, slots=True)
class File:
    """An unpacked file."""

    size: int
    """Its size in bytes."""
    sha256: str
    """Its digest in hex."""
    executable: bool
    """Whether it is executable."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of an unpacked archive, by path below its folder."""

    files: Mapping[str, File]
    """Its files."""
    links: Mapping[str, str]
    """Its symbolic links, with their targets."""

    @property
    def licence(self) -> str:
        """The license file nearest to the top; empty without one."""
        named = [path for path in (*self.files, *self.links) if _LICENCE.fullmatch(path.rpartition("/")[2])]
        named += [path for path in self.files if path.startswith("info/licenses/")]
        return min(named, key=lambda path: (path.count("/"), path), default="")


def unpack(
    archive: Path,
    kind: str,
    folder: Path,
    *,
    strip: int = 0,
    windows: bool = False,
    limits: UnpackLimits | None = None,
    name: str = "",
) -> Contents:
    """Unpack a verified archive into a new folder.

    Args:
        archive: The file.
        kind: Its format.
        folder: The new folder, which must not exist; files go to a temporary folder beside it first.
        strip: The number of leading folders to remove from its names.
        windows: Refuse names that Windows can't hold or distinguish; otherwise the file system decides.
        limits: The limits on its content.
        name: Its name in messages; empty for its file name.

    Raises:
        ArchiveRefusedError: The archive is damaged or unsafe.
        StorageError: The disk is full, or the folder is not writable.
    """
    read = reader_of(kind)
    with storage_errors(f"can't unpack {name or archive.name}"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        staging = _Staging(aside / "tree", name or archive.name, archive.stat().st_size, strip, windows, limits)
        try:
            read(archive, staging)
            contents = staging.finish()
            (aside / "tree").rename(folder)
        finally:
            staging.close()
            shutil.rmtree(aside, ignore_errors=True)
    return contents


@dataclass
class _Staging:
    """Writes the entries of one archive to a folder, and refuses unsafe ones."""

    folder: Path
    """The folder, which must not exist yet."""
    archive: str
    """The name of the archive in messages."""
    packed: int
    """The size of the archive in bytes."""
    strip: int
    """The number of leading folders to remove from its names."""
    windows: bool
    """Refuse names that Windows can't hold."""
    given: UnpackLimits | None
    """The limits; None for the default ones."""
    kinds: dict[tuple[str, ...], Kind] = field(default_factory=dict)
    links: dict[tuple[str, ...], str] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)
    made: set[tuple[str, ...]] = field(default_factory=set)
    open: "set[_Writer]" = field(default_factory=set)
    count: int = 0
    declared: int = 0
    written: int = 0

    def __post_init__(self) -> None:
        self.limits = self.given or UnpackLimits()
        self.folder.mkdir(mode=0o755)
        self.clashes = Clashes(None if self.windows else self.folder.parent)

    def refuse(self, entry: str, reason: str) -> ArchiveRefusedError:
        """Return the error for an entry."""
        shown = entry if len(entry) <= 80 else f"{entry[:77]}..."  # noqa: PLR2004 (it fits on a line)
        return ArchiveRefusedError(
            f"{self.archive}: {shown!r} {reason}",
            hint="tenv keeps none of it; if the publisher distributes this file, report it to them",
        )

    # Called by readers

    def file(self, entry: Entry) -> Sink | None:
        """Return the sink for the bytes of a file; None for a file that is dropped."""
        parts = self._register(entry)
        if entry.mode & _SPECIAL_BITS:
            raise self.refuse(entry.name, "has the setuid, setgid or sticky bit")
        if entry.size is not None and entry.size < 0:
            raise self.refuse(entry.name, "declares a negative size")
        self.declared += entry.size or 0
        self._check_volume(self.declared)
        if not parts:
            return None
        return _Writer(self, parts, entry)

    def other(self, entry: Entry) -> None:
        """Add a folder or a link."""
        if entry.kind is Kind.OTHER:
            raise self.refuse(entry.name, "is a device, a pipe or a socket")
        if entry.kind in (Kind.LINK, Kind.SAME):
            self._check_target(entry)
        parts = self._register(entry)
        if not parts:
            return
        if entry.kind is Kind.FOLDER:
            self.make_folder(parts)
        elif entry.kind is Kind.LINK:
            self.links[parts] = entry.target
        else:
            self._make_same(entry, parts)

    def passed(self, count: int) -> None:
        """Set the number of decompressed bytes so far."""
        self._check_volume(count)

    # Checks

    def _register(self, entry: Entry) -> tuple[str, ...]:
        """Return the destination of an entry, after all checks of its name."""
        self.count += 1
        self.limits.check(self.archive, self.packed, self.declared, self.count)
        parts = self._parts(entry.name, entry.name)
        if not parts and entry.kind is not Kind.FOLDER:
            raise self.refuse(entry.name, "is not a name of a file")
        parts = parts[self.strip :]
        for length in range(1, len(parts)):
            self._claim(parts[:length], Kind.FOLDER, entry.name)
        if parts:
            self._claim(parts, Kind.FILE if entry.kind is Kind.SAME else entry.kind, entry.name)
        return parts

    def _claim(self, parts: tuple[str, ...], kind: Kind, name: str) -> None:
        had = self.kinds.get(parts)
        if had is Kind.FOLDER and kind is Kind.FOLDER:
            return
        if had is not None:
            what = f"goes through a {had.value}" if kind is Kind.FOLDER else "occurs twice"
            raise self.refuse(name, what)
        if other := self.clashes.add("/".join(parts)):
            raise self.refuse(name, f"differs from {other!r} only by case or Unicode form, and would replace it")
        self.kinds[parts] = kind

    def _parts(self, name: str, shown: str) -> tuple[str, ...]:
        try:
            return parts_of(name, self.limits, windows=self.windows)
        except ValueError as error:
            raise self.refuse(shown, str(error)) from None

    def _check_target(self, entry: Entry) -> None:
        try:
            check_target(entry.target, self.limits, hard=entry.kind is Kind.SAME)
        except ValueError as error:
            raise self.refuse(entry.name, str(error)) from None
        if entry.kind is Kind.SAME:
            self._parts(entry.target, entry.name)

    def _check_volume(self, volume: int) -> None:
        self.limits.check(self.archive, self.packed, volume)

    def count_written(self, count: int) -> None:
        """Count bytes before writing them."""
        self.written += count
        self._check_volume(self.written)

    def make_folder(self, parts: tuple[str, ...]) -> None:
        """Create a folder and its parents; none of them can be a link, since links are made last."""
        for length in range(1, len(parts) + 1):
            if (folder := parts[:length]) not in self.made:
                self.folder.joinpath(*folder).mkdir(mode=0o755, exist_ok=True)
                self.made.add(folder)

    # The end

    def close(self) -> None:
        """Close the open files of a refused archive."""
        for file in tuple(self.open):
            file.abandon()

    def finish(self) -> Contents:
        """Create the links and return the content."""
        if not (self.files or self.links):
            below = f" after removal of {self.strip} leading folders" if self.strip else ""
            hint = "`strip` in the manifest sets the number of leading folders to remove" if self.strip else ""
            raise ArchiveRefusedError(f"{self.archive}: holds no file{below}", hint=hint)
        for link, target in self.links.items():
            try:
                check_way(link, target, self.links)
            except ValueError as error:
                raise self.refuse("/".join(link), str(error)) from None
        for link, target in self.links.items():
            self.make_folder(link[:-1])
            self.folder.joinpath(*link).symlink_to(target)
        return Contents(self.files, {"/".join(link): target for link, target in self.links.items()})

    def _make_same(self, entry: Entry, parts: tuple[str, ...]) -> None:
        source = self._parts(entry.target, entry.target)[self.strip :]
        file = self.files.get("/".join(source))
        if file is None:
            raise self.refuse(entry.name, "is a hard link to a file that does not precede it")
        self.make_folder(parts[:-1])
        here, there = self.folder.joinpath(*parts), self.folder.joinpath(*source)
        with contextlib.suppress(OSError):
            here.hardlink_to(there)
        if not here.exists():
            self.count_written(file.size)
            shutil.copy2(there, here)
        self.files["/".join(parts)] = file


class _Writer:
    """Writes one file and computes its digest."""

    def __init__(self, staging: _Staging, parts: tuple[str, ...], entry: Entry) -> None:
        self._staging = staging
        self._parts = parts
        self._entry = entry
        self._handle = -1
        self._digest = hashlib.sha256()
        self._size = 0
        self._closed = False

    def write(self, data: bytes) -> None:
        self._size += len(data)
        if self._entry.size is not None and self._size > self._entry.size:
            raise self._staging.refuse(self._entry.name, "holds more than it declares")
        self._staging.count_written(len(data))
        if self._handle < 0:
            self._open()
        self._digest.update(data)
        view = memoryview(data)
        while view:
            view = view[os.write(self._handle, view) :]

    def _open(self) -> None:
        self._staging.make_folder(self._parts[:-1])
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        self._handle = os.open(self._staging.folder.joinpath(*self._parts), flags, 0o600)
        self._staging.open.add(self)

    def abandon(self) -> None:
        """Close the file without a digest."""
        self._staging.open.discard(self)
        os.close(self._handle)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._handle < 0:
            self._open()
        executable = bool(self._entry.mode & 0o111)
        with contextlib.suppress(AttributeError):  # not on Windows
            os.fchmod(self._handle, 0o555 if executable else 0o444)
        self.abandon()
        self._staging.files["/".join(self._parts)] = File(self._size, self._digest.hexdigest(), executable)
        if self._entry.size is not None and self._size < self._entry.size:
            raise self._staging.refuse(self._entry.name, "holds less than it declares")
