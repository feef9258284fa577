"""A large file that is written beside its place: a part that a killed process left goes with the next write.

A process that is ended by SIGKILL, as by a scheduler at its time limit, removes nothing. The process that writes a part
locks it, so that the next one knows which of them nobody writes.
"""

import contextlib
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tenv.core.files import replacing

_RANDOM = r"[0-9a-f]{8}"
"""The letters that `replacing` adds to a name."""
_SECONDS = 60.0
"""A younger part may not be locked yet."""


@contextlib.contextmanager
def large_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of another one if the body ends well, and is removed otherwise.

    Args:
        path: The file; a file that is there stays until then. Its folder is made.

    Raises:
        OSError: The folder can't be made, or the file not be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    with replacing(path) as file:
        _lock(file.fileno())
        yield file


def _sweep(path: Path) -> None:
    """Remove the parts of a file that no process writes."""
    named = re.compile(rf"\.{re.escape(path.name)}\.{_RANDOM}")
    for part in path.parent.iterdir():
        if not named.fullmatch(part.name) or part.is_symlink() or not part.is_file():
            continue
        with contextlib.suppress(OSError):  # of another user, or removed by now
            if time.time() - part.stat().st_mtime < _SECONDS:
                continue
            handle = os.open(part, os.O_RDWR)
            try:
                if _lock(handle):
                    part.unlink()
            finally:
                os.close(handle)


def _lock(handle: int) -> bool:
    """Lock an open file; return whether this process has the lock. Some file systems have no locks."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
