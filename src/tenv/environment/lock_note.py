"""The last comparison of an environment with its lock, stored in ``tenv-meta/lock-note`` for the hooks of shells.

A hook starts no program while the lock has the size and the time of the note; commands of tenv read the lock itself.
The file has the time of last change of the lock. Its lines: the path of the lock, the sentence about it (empty while it
has the files of the environment), the size of the lock in bytes, and the paths where a lock that would count more may
appear.
"""

import contextlib
import os
import time
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.errors import StorageError
from tenv.core.files import read_regular, write_atomic
from tenv.core.prefix import LOCK_NOTE
from tenv.environment.state import Environment

_MOST = 64 * 1024
_TICK = 20_000_000
"""Nanoseconds within which two changes of a file may leave it the same time: file systems take it from a clock that
ticks every 10 ms or faster.
"""


@dataclass(frozen=True, slots=True)
class LockStamp:
    """The identity of a file and its content. Two equal ones, before and after a read, are the stamp of its bytes."""

    inode: int
    """The inode of the file."""
    size: int
    """Its bytes."""
    time: int
    """The time of the last change of its content, in nanoseconds."""
    changed: int
    """The time of the last change of its content or its inode, in nanoseconds."""

    @classmethod
    def of(cls, lock: Path) -> "LockStamp | None":
        """Return the stamp of a lock; None for a missing lock, and where its next change may leave the same stamp."""
        try:
            info = lock.stat()
        except OSError:
            return None
        if abs(time.time_ns() - info.st_ctime_ns) < _TICK:
            return None
        return cls(info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


@dataclass(frozen=True, slots=True)
class LockNote:
    """The result of a comparison with a lock."""

    lock: Path
    """The lock's file."""
    size: int
    """The bytes of the compared lock."""
    time: int
    """The time of its last change, in nanoseconds."""
    sentence: str
    """The sentence about it; empty while it has the files of the environment."""
    nearer: tuple[Path, ...] = ()
    """The files, absent then, that would be the lock if they were there."""


def read_lock_note(environment: Environment) -> LockNote | None:
    """Return the note; None if there is none, or it can't be read."""
    file = environment.meta / LOCK_NOTE
    try:
        lines = read_regular(file, _MOST).decode().split("\n")
        lock, sentence, size, *nearer = lines[:-1]
        return LockNote(Path(lock), int(size), file.stat().st_mtime_ns, sentence, tuple(map(Path, nearer)))
    except (OSError, ValueError):
        return None


def write_lock_note(environment: Environment, note: LockNote) -> None:
    """Write a note if possible and needed; without one, a hook asks tenv."""
    lines = (str(note.lock), note.sentence, str(note.size), *map(str, note.nearer))
    if note == read_lock_note(environment) or any("\n" in line or not line.isprintable() for line in lines):
        return
    file = environment.meta / LOCK_NOTE
    with contextlib.suppress(StorageError, OSError):
        write_atomic(file, "".join(f"{line}\n" for line in lines), within=environment.prefix, parents=False)
        os.utime(file, ns=(note.time, note.time))


def drop_lock_note(environment: Environment) -> None:
    """Remove the note, since the environment is about to change."""
    (environment.meta / LOCK_NOTE).unlink(missing_ok=True)
