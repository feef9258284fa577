"""The size of a folder, and what one walk through it says of its files."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from tenv.core.dataclass import dataclass

__all__ = ["MeasuredFolder", "folder_size", "measure"]


@dataclass(frozen=True, slots=True)
class MeasuredFolder:
    """A folder after a walk through it.

    Attributes:
        folder: The folder.
        bytes: The bytes of its files; hard links to the same file count once.
        linked: Each file with several hard links, by its path: its size in bytes, and the time of its last change in
            nanoseconds.
        single: The paths of the other files, and of symbolic links.
        numbers: The device and number of each file in `linked`.
    """

    folder: str
    bytes: int
    linked: dict[str, tuple[int, int]]
    single: set[str]
    numbers: dict[str, tuple[int, int]]


def measure(
    folder: Path, *, apart: MeasuredFolder | None = None, known: Mapping[str, int] = MappingProxyType({})
) -> MeasuredFolder:
    """Return the size and the files of a folder; what vanishes meanwhile does not count.

    Args:
        folder: The folder.
        apart: A folder below it that was measured before, and is not entered again. It counts in the bytes alone.
        known: The sizes in bytes of files that are not looked at, by their names relative to it. No two of them are
            one file. They count in the bytes alone.
    """
    linked: dict[str, tuple[int, int]] = {}
    single: set[str] = set()
    numbers: dict[str, tuple[int, int]] = {}
    inodes = set(apart.numbers.values()) if apart else set[tuple[int, int]]()
    total = apart.bytes if apart else 0
    stack, start = [os.fspath(folder)], len(os.fspath(folder)) + 1
    while stack:
        place = stack.pop()
        with contextlib.suppress(OSError), _entries(place) as entries:
            for entry in entries:
                path = f"{place}{os.sep}{entry.name}"
                if known and (size := known.get(path[start:])) is not None and entry.is_file(follow_symlinks=False):
                    total += size
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if apart is None or path != apart.folder:
                        stack.append(path)
                    continue
                info = entry.stat(follow_symlinks=False)
                if info.st_nlink == 1:
                    single.add(path)
                    total += info.st_size
                    continue
                linked[path] = info.st_size, info.st_mtime_ns
                numbers[path] = inode = (info.st_dev, info.st_ino)
                if inode not in inodes:
                    inodes.add(inode)
                    total += info.st_size
    return MeasuredFolder(os.fspath(folder), total, linked, single, numbers)


@contextlib.contextmanager
def _entries(folder: str) -> Iterator[Iterator["os.DirEntry[str]"]]:
    """Yield the entries of a folder; by its handle, so that the system does not look up its path for each of them."""
    if os.scandir not in os.supports_fd:  # Windows
        with os.scandir(folder) as entries:
            yield entries
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with os.scandir(handle) as entries:
            yield entries
    finally:
        os.close(handle)


def folder_size(
    folder: Path, *, apart: MeasuredFolder | None = None, known: Mapping[str, int] = MappingProxyType({})
) -> int:
    """Return the bytes of a folder's files; hard links to the same file count once.

    Args:
        folder: The folder.
        apart: A folder below it that was measured before, and is unchanged.
        known: As `measure` takes it.
    """
    return measure(folder, apart=apart, known=known).bytes
