"""Files that a wheel puts where tenv, rattler or Python keep their own: records, kept locks, ``pyvenv.cfg``.

uv places what a wheel has in ``NAME.data/data`` anywhere in the prefix, over files that are there. A RECORD need not
name such a file, so the places are compared before and after.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenv.core.errors import UnsafePackageError
from tenv.core.prefix import LOCK_NOTE, OWN

__all__ = ["own_files_guarded"]

_PLACES = (*OWN, "conda-meta", "pyvenv.cfg")
_Seen = dict[str, tuple[int, int, int]]


@contextmanager
def own_files_guarded(prefix: Path) -> Iterator[None]:
    """Run an installer, and remove what it has put where tenv, rattler or Python keep their own files.

    Raises:
        UnsafePackageError: There was such a file.
    """
    before = _seen(prefix)
    try:
        yield
    finally:
        planted = [name for name, stamp in _seen(prefix).items() if before.get(name) != stamp]
        for name in planted:
            (prefix / name).unlink(missing_ok=True)
    if planted:
        raise UnsafePackageError(
            f"a wheel of the lock brings {planted[0]!r}, a file of tenv or of Python itself, which was removed",
            hint="`tenv diff` shows which wheels are new; take the one out of the manifest, and tell its maker",
        )


def _seen(prefix: Path) -> _Seen:
    """Return the inode, size and time of each file in the places, by its name in the prefix."""
    found: _Seen = {}
    for place in _PLACES:
        path = prefix / place
        for file in path.rglob("*") if path.is_dir() and not path.is_symlink() else (path,):
            # Another process may write the note of the lock meanwhile.
            if file.name == LOCK_NOTE or (file.is_dir() and not file.is_symlink()):
                continue
            try:
                stat = file.lstat()
            except OSError:
                continue
            found[os.path.relpath(file, prefix)] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    return found
