"""The libraries of an audited file, folder or wheel; a wheel is read without being unpacked.

The bytes may be hostile: a member of a wheel is decompressed to memory or to a file without a name, one at a time,
and sizes and counts have limits.
"""

import mmap
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from fnmatch import fnmatch
from pathlib import Path
from typing import IO

from tenv.core.damaged_archives import DAMAGED_ZIP
from tenv.core.dataclass import dataclass
from tenv.core.elf import MAGIC
from tenv.core.errors import UsageError
from tenv.core.names import is_wheel

_MOST_FILES = 200_000
_MOST_BYTES = 16 << 30
"""The largest library that is read, and the most that is decompressed of one wheel: the largest torch has 3 GiB."""
_BOMB = 1 << 28, 250
"""From this size on, a member that is compressed by more than this factor is no library: those stay below 20."""
_IN_MEMORY = 1 << 28
"""Up to this size, a member is decompressed to memory."""
_NOTE_SIZE = 1 << 20


class AuditedKind(StrEnum):
    """The kind of an audited path."""

    FILE = "file"
    FOLDER = "folder"
    WHEEL = "wheel"


@dataclass(frozen=True, slots=True)
class TreePart:
    """A file in it."""

    path: str
    """Its place below the audited path."""
    data: "bytes | mmap.mmap | None"
    """Its bytes; None where it can't be read."""
    fault: str = ""
    """Why it can't be read; empty where it can."""


class AuditedTree:
    """An audited file, folder or wheel.

    Attributes:
        path: Where it is.
        kind: Its kind.
        names: The files in it by their last name, links included, each with one path.
        fault: Why it can't be read as a whole; empty where it can.
    """

    def __init__(self, path: Path, kind: AuditedKind, files: list[str], fault: str = "") -> None:
        self.path = path
        self.kind = kind
        self.files = files
        self.names = {name.rpartition("/")[2]: name for name in reversed(files)}
        self.fault = fault

    def libraries(self, patterns: Sequence[str] = ("*",)) -> Iterator[TreePart]:
        """Yield the ELF files in it whose place fits a pattern, open for the time of the step."""
        if self.kind is AuditedKind.WHEEL:
            yield from self._members(patterns)
            return
        base = self.path if self.kind is AuditedKind.FOLDER else self.path.parent
        for name in (name for name in self.files if _fits(name, patterns)):
            if not (base / name).is_symlink() or self.kind is AuditedKind.FILE:
                yield from _on_disk(base / name, name)

    def _members(self, patterns: Sequence[str]) -> Iterator[TreePart]:
        left = _MOST_BYTES
        try:
            with zipfile.ZipFile(self.path) as archive:
                for entry in archive.infolist():
                    if entry.is_dir() or not _fits(entry.filename, patterns):
                        continue
                    yield from _member(archive, entry, left)
                    left -= entry.file_size if _is_library(entry.filename) else 0
        except DAMAGED_ZIP as error:
            yield TreePart("", None, f"the wheel can't be read further: {error}")

    def note(self, name: str) -> bytes | None:
        """Return the content of a small file in it; None where it is not there or is large."""
        if self.kind is not AuditedKind.WHEEL:
            base = self.path if self.kind is AuditedKind.FOLDER else self.path.parent
            return read_note(base / name)
        try:
            with zipfile.ZipFile(self.path) as archive:
                entry = archive.getinfo(name)
                return archive.read(entry) if entry.file_size <= _NOTE_SIZE else None
        except DAMAGED_ZIP:
            return None


def read_note(path: Path) -> bytes | None:
    """Return the content of a small file; None for a large one, or without one."""
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size <= _NOTE_SIZE else None
    except OSError:
        return None


def open_tree(path: Path) -> AuditedTree:
    """Return the file, folder or wheel at a path.

    Raises:
        UsageError: It is not there, or is neither a folder, a wheel nor a library.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return _folder(path)
        if not stat.S_ISREG(mode):
            raise UsageError(f"{path}: is neither a folder nor a file")
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror or error}", hint=HINT) from error
    if is_wheel(path.name) or path.suffix == ".zip" or start == b"PK\x03\x04":
        return _wheel(path)
    if start != MAGIC and ".so" not in path.name:
        raise UsageError(f"{path}: is neither a wheel nor an ELF file", hint=HINT)
    return AuditedTree(path, AuditedKind.FILE, [path.name])


HINT = "name a built torch, a wheel, a library or a folder of libraries: `tenv audit dist/torch-*`"


def _folder(path: Path) -> AuditedTree:
    if (path / "torch" / "__init__.py").is_file() and (path / "setup.py").is_file():
        path = path / "torch"  # of a checkout, the package with the built files
    files: list[str] = []
    for folder, folders, names in os.walk(path):
        folders.sort()
        files += [os.path.relpath(os.path.join(folder, name), path) for name in sorted(names)]  # noqa: PTH118 (many)
        if len(files) > _MOST_FILES:
            return AuditedTree(path, AuditedKind.FOLDER, [], f"it has more than {_MOST_FILES} files")
    return AuditedTree(path, AuditedKind.FOLDER, files)


def _wheel(path: Path) -> AuditedTree:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    except DAMAGED_ZIP as error:
        return AuditedTree(path, AuditedKind.WHEEL, [], f"it can't be read as a wheel: {error}")
    if len(names) > _MOST_FILES:
        return AuditedTree(path, AuditedKind.WHEEL, [], f"it has more than {_MOST_FILES} files")
    return AuditedTree(path, AuditedKind.WHEEL, names)


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _is_library(name: str) -> bool:
    last = name.rpartition("/")[2]
    return last.endswith((".so", ".pyd")) or ".so." in last


def _on_disk(path: Path, name: str) -> Iterator[TreePart]:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return
        with path.open("rb") as file:
            size, start = path.stat().st_size, file.read(64)
            if start[:4] != MAGIC:
                if _is_library(name):
                    yield from _unlike(name, size, start)
                return
            if size > _MOST_BYTES:
                yield TreePart(name, None, f"its {size} bytes are more than any library has")
                return
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield TreePart(name, data)
    except (OSError, ValueError) as error:
        yield TreePart(name, None, str(getattr(error, "strerror", "") or error))


def _unlike(name: str, size: int, start: bytes) -> Iterator[TreePart]:
    """Yield a file that is named like a library and is none; linker scripts and libraries of Windows are let pass."""
    if not start.startswith((b"/*", b"INPUT", b"GROUP", b"OUTPUT_FORMAT", b"MZ")):
        yield TreePart(name, None, f"the file has no ELF header ({size} bytes)")


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, left: int) -> Iterator[TreePart]:
    name = entry.filename
    least, factor = _BOMB
    try:
        with archive.open(entry) as member:
            start = member.read(64)
            if start[:4] != MAGIC:
                if _is_library(name):
                    yield from _unlike(name, entry.file_size, start)
                return
            if entry.file_size > left:
                yield TreePart(name, None, f"the wheel unpacks to more than {_MOST_BYTES >> 30} GiB")
                return
            if entry.file_size > least and entry.file_size > factor * entry.compress_size:
                yield TreePart(name, None, f"{entry.compress_size} bytes unpack to {entry.file_size}: no library does")
                return
            if entry.file_size <= _IN_MEMORY:
                yield TreePart(name, start + member.read())
                return
            with _unpacked(start, member) as data:
                yield TreePart(name, data)
    except DAMAGED_ZIP as error:
        yield TreePart(name, None, f"the wheel is damaged: {error}")


@contextmanager
def _unpacked(start: bytes, member: IO[bytes]) -> Iterator[mmap.mmap]:
    with tempfile.TemporaryFile() as file:
        file.write(start)
        shutil.copyfileobj(member, file, 1 << 20)
        file.flush()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data
