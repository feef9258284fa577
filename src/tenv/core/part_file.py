"""A large file that is written beside its place: a part that a killed process left goes with the next write.

A process that is ended by SIGKILL, as by a scheduler at its time limit, removes nothing. Each part is locked by the
process that writes it, so that the next one knows which of them nobody writes.
"""

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import IO

from tenv.core.files import mode_of_new

_BUFFER = 1 << 20
_RANDOM = r"[a-z0-9_]{8}"
"""The letters that `tempfile` adds to a name."""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that takes the place of another one if the body ends well, and is removed otherwise.

    Args:
        path: The file; a file that is there stays until then.

    Raises:
        OSError: The folder can't be made, or the file not be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    handle, part = _new_part(path)
    try:
        # Small headers are joined, and pieces of 4 MiB pass through.
        with FileIO(handle, "wb") as raw, BufferedWriter(raw, _BUFFER) as file:
            yield file
            file.flush()
            part.chmod(mode_of_new())
            if sys.platform != "win32":  # before the lock ends with the file
                part.replace(path)
        if sys.platform == "win32":
            part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _new_part(path: Path) -> tuple[int, Path]:
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        if _lock(handle) is not False and os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)  # another process took it for a leftover


def _sweep(path: Path) -> None:
    """Remove the parts of a file that no process writes."""
    named = re.compile(rf"\.{re.escape(path.name)}\.{_RANDOM}")
    for part in path.parent.iterdir():
        if not named.fullmatch(part.name) or part.is_symlink() or not part.is_file():
            continue
        with contextlib.suppress(OSError):  # of another user, or removed by now
            handle = os.open(part, os.O_RDWR)
            try:
                if _lock(handle):
                    part.unlink()
            finally:
                os.close(handle)


def _lock(handle: int) -> bool | None:
    """Lock an open file; return False if another process has locked it, None where the file system has no locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
