"""Digests of files by their handles: a file object costs as much as to hash a small file."""

import os
import sys
from pathlib import Path
from typing import Any

from tenv.core.files import regular_handle

__all__ = ["hash_regular"]


def hash_regular(path: str | Path, hasher: Any, room: memoryview) -> str:
    """Return the digest of a regular file's bytes in hex.

    Args:
        path: The file.
        hasher: A hash object that has seen nothing yet.
        room: Where the bytes are read to; `hashlib.file_digest` makes room anew for each file.

    Raises:
        OSError: As in `open_regular`.
    """
    handle = regular_handle(path)
    try:
        while count := _read(handle, room):
            hasher.update(room[:count])
    finally:
        os.close(handle)
    return str(hasher.hexdigest())


def _read(handle: int, room: memoryview) -> int:
    """Read the next bytes into the room, and return how many bytes; 0 at the end."""
    if sys.platform != "win32":
        return os.readv(handle, (room,))
    data = os.read(handle, len(room))
    room[: len(data)] = data
    return len(data)
