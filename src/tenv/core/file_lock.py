"""A lock file that one process holds at a time, by the operating system's own locks.

The library for it, filelock, imports asyncio: 75 ms of each command that writes. The locks are the same, so that
versions of tenv that used it exclude this one.
"""

import contextlib
import errno
import os
import sys
import time
from pathlib import Path

_PAUSE = 0.05
"""Seconds between two tries. A process that waits in flock itself would not hear Python's handlers of signals."""

_TAKEN = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK)
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class LockTakenError(Exception):
    """Another process holds the lock."""


class FileLock:
    """A lock on a file, which is made where it is missing and stays when the lock is released.

    It ends with the process, too. A file that is removed while processes wait would part them, so nobody removes it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._descriptor = -1

    def acquire(self, timeout: float | None) -> None:
        """Take the lock.

        Args:
            timeout: The most seconds to wait; None waits forever.

        Raises:
            LockTakenError: Another process still holds it.
            OSError: The file can't be opened, or its file system has no locks.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while not self._try():
            if end is not None and time.monotonic() >= end:
                raise LockTakenError
            time.sleep(_PAUSE)

    def release(self) -> None:
        """Give the lock back."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):  # some network file systems fail here; closing releases all the same
                _release(descriptor)
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _try(self) -> bool:
        descriptor = self._open()
        try:
            _take(descriptor)
            if os.fstat(descriptor).st_nlink:
                self._descriptor, descriptor = descriptor, -1
                return True
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        return False

    def _open(self) -> int:
        try:
            return os.open(self._file, _FLAGS, 0o644)
        except PermissionError as error:  # in a folder such as /tmp, O_CREAT fails for a file of another user
            try:
                return os.open(self._file, _FLAGS & ~os.O_CREAT)
            except FileNotFoundError:
                raise error from None


if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _release(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
