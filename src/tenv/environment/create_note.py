"""What `create` looked at when it found nothing to do, stored in ``tenv-meta/create-note``.

While none of it has changed, the next `create` has nothing to do either, and can say so without the program
(`tenv.quick`). The file's lines: the version of tenv, the kind of machine, the folders that were searched for manifests
and locks, and after an empty line a path, a size in bytes and a time of last change in nanoseconds each. A folder has
the size 0: its time changes when a name in it does. What was not there has the size -1.
"""

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from tenv.core.errors import StorageError
from tenv.core.files import read_regular, write_atomic
from tenv.core.prefix import CREATE_NOTE
from tenv.environment.state import Environment

__all__ = ["note_files"]

_MOST = 64 * 1024


def note_files(environment: Environment, version: str, searched: Sequence[Path], files: Iterable[Path]) -> None:
    """Write the note if possible; without one, the program looks again.

    Args:
        environment: The environment.
        version: The version of tenv.
        searched: The folders with manifests and locks, nearest first.
        files: The files and folders whose change could change the answer.
    """
    rows = [version, os.uname().machine, *map(str, searched), "", *(_row(file) for file in files)]
    text = "".join(f"{row}\n" for row in rows)
    if "" in rows[: len(searched) + 2] or not all(row.isprintable() for row in rows):
        return
    file = environment.meta / CREATE_NOTE
    with contextlib.suppress(OSError, StorageError):
        if read_regular(file, _MOST).decode() == text:
            return
    with contextlib.suppress(OSError, StorageError):
        write_atomic(file, text, within=environment.prefix, parents=False)


def _row(file: Path) -> str:
    """Return the line of a file; raises no error for what is not there."""
    try:
        info = file.stat()
    except OSError:
        return f"{file} -1 0"
    return f"{file} {0 if file.is_dir() else info.st_size} {info.st_mtime_ns}"
