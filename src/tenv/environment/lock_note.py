"""The last comparison of an environment with its lock, stored in ``tenv-meta/lock-note``.

The file has the time of last change that the lock had, so that a shell can tell without a program whether the lock is
still the one that was looked at. Its lines: the path of the lock, what to say about it (empty while it has the files of
the environment), the size of the lock in bytes, and the paths at which a lock that would count more may appear.
"""

import contextlib
import os
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.errors import StorageError
from tenv.core.files import read_regular, write_atomic
from tenv.core.prefix import LOCK_NOTE
from tenv.environment.state import Environment

__all__ = ["LockNote", "drop_note", "read_note_of_lock", "write_note_of_lock"]

_MOST = 64 * 1024


@dataclass(frozen=True, slots=True)
class LockNote:
    """The result of a comparison with a lock.

    Attributes:
        lock: The lock's file.
        size: Its bytes when it was looked at.
        sentence: What to say about it; empty while it has the files of the environment.
        nearer: The files, absent then, that would be the lock if they were there.
    """

    lock: Path
    size: int
    sentence: str
    nearer: tuple[Path, ...] = ()

    def holds(self, lock: Path, nearer: tuple[Path, ...], file: Path) -> bool:
        """Return whether the note is about the present lock.

        Args:
            lock: The lock that counts now.
            nearer: The files that would count more.
            file: The note's own file, which has the time of the lock.
        """
        if (self.lock, self.nearer) != (lock, nearer):
            return False
        try:
            now, noted = lock.stat(), file.stat()
        except OSError:
            return False
        return now.st_size == self.size and now.st_mtime_ns == noted.st_mtime_ns


def read_note_of_lock(environment: Environment) -> LockNote | None:
    """Return the note; None if there is none, or it can't be read."""
    try:
        lines = read_regular(environment.meta / LOCK_NOTE, _MOST).decode().split("\n")
        lock, sentence, size, *nearer = lines[:-1]
        return LockNote(Path(lock), int(size), sentence, tuple(map(Path, nearer)))
    except (OSError, ValueError):
        return None


def write_note_of_lock(environment: Environment, note: LockNote, time: int) -> None:
    """Write a note if possible; without one, the next command compares again.

    Args:
        environment: The environment.
        note: The note.
        time: When the lock was last changed, in nanoseconds.
    """
    lines = (str(note.lock), note.sentence, str(note.size), *map(str, note.nearer))
    if any("\n" in line or not line.isprintable() for line in lines):
        return
    file = environment.meta / LOCK_NOTE
    with contextlib.suppress(StorageError, OSError):
        write_atomic(file, "".join(f"{line}\n" for line in lines), within=environment.prefix, parents=False)
        os.utime(file, ns=(time, time))


def drop_note(environment: Environment) -> None:
    """Remove the note, since the environment is about to change."""
    (environment.meta / LOCK_NOTE).unlink(missing_ok=True)
