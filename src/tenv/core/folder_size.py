"""The size of a folder."""

import contextlib
import os
from pathlib import Path

__all__ = ["folder_size"]


def folder_size(folder: Path) -> int:
    """Return the bytes of a folder's files; hard links to the same file count once, and vanished files not at all."""
    inodes: set[tuple[int, int]] = set()
    total, stack = 0, [os.fspath(folder)]
    while stack:
        with contextlib.suppress(OSError), os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
                    continue
                info = entry.stat(follow_symlinks=False)
                if info.st_nlink > 1:
                    if (info.st_dev, info.st_ino) in inodes:
                        continue
                    inodes.add((info.st_dev, info.st_ino))
                total += info.st_size
    return total
