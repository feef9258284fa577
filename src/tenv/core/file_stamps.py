"""Stamps of files in caches, by the sha256 of the package that they are from, in tenv's own cache folder.

An installer may link the files of its cache into environments, so that an edit in one environment changes the cache. A
file with another stamp than the noted one is compared with its digest before it is used again.
"""

import contextlib
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from tenv.core.errors import StorageError
from tenv.core.files import read_regular, write_atomic
from tenv.core.user_folders import user_cache

Stamp = tuple[int, int, int]
"""The size of a file in bytes, the time of its last change in nanoseconds, and 1 for a program, else 0."""


def stamp(path: str, noted: Stamp | None = None) -> Stamp:
    """Return the stamp of a file; raises OSError for a missing one.

    Args:
        path: The file.
        noted: Its noted stamp, whose rights it gets back: a file with several hard links has its rights in all of them.
    """
    status = os.lstat(path)  # not a Path: there are tens of thousands of files
    executable = int(bool(status.st_mode & stat.S_IXUSR))
    if noted and noted[-1] != executable:
        set_executable(path, executable=bool(noted[-1]))
        executable = noted[-1]
    return status.st_size, status.st_mtime_ns, executable


def set_executable(path: str | Path, *, executable: bool) -> None:
    """Make a regular file executable, or no longer; anything else stays. Raises OSError where it can't be changed."""
    mode = os.lstat(path).st_mode
    if stat.S_ISREG(mode):
        os.chmod(path, stat.S_IMODE(mode | 0o111 if executable else mode & ~0o111))  # noqa: PTH101 (as above)


def stamps_folder() -> Path:
    """Return the folder of the notes; without it, digests are compared again."""
    cache = os.environ.get("TENV_CACHE_DIR")
    return (Path(cache) if cache else user_cache()) / "stamps"


def is_note(path: Path) -> bool:
    """Return whether a file is a note by its name, or the remainder of an interrupted write."""
    return _NOTE.search(path.name) is not None


_NOTE = re.compile(r"(?:^|\.)(conda|requires|wheel|unpacked)-[0-9a-f]{32,64}\.json\b")


def _file(key: str) -> Path:
    return stamps_folder() / f"{key}.json"


def noted_stamps(key: str) -> dict[str, Stamp]:
    """Return the noted stamps by file name; empty where none were noted or can be read."""
    with contextlib.suppress(OSError, ValueError, RecursionError, TypeError, AttributeError):
        rows = json.loads(read_regular(_file(key))).items()
        return {name: (int(size), int(time), int(program)) for name, (size, time, program) in rows}
    return {}


def note_stamps(key: str, stamps: Mapping[str, Stamp]) -> None:
    """Note the stamps of files whose digests are right, if possible; without them digests are compared again."""
    with contextlib.suppress(StorageError, OSError):
        write_atomic(_file(key), json.dumps(stamps))
