"""Sizes and times of files in caches, by the sha256 of what was unpacked there, in tenv's own cache folder.

An installer may link the files of its cache into environments, so that an edit in one environment changes the cache. A
file whose size or time is no longer what tenv noted is compared with its digest before it is used again.
"""

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from tenv.core.errors import StorageError
from tenv.core.files import read_regular, write_atomic
from tenv.core.user_folders import user_cache

__all__ = ["Stamp", "note_stamps", "noted_stamps", "stamp", "stamps_folder"]

Stamp = tuple[int, int]
"""The size of a file in bytes and the time of its last change in nanoseconds."""


def stamp(path: str) -> Stamp:
    """Return the stamp of a file; raises OSError where there is none."""
    status = os.lstat(path)  # not a Path: there are tens of thousands of files
    return status.st_size, status.st_mtime_ns


def stamps_folder() -> Path:
    """Return the folder of the notes; without it, digests are compared again."""
    cache = os.environ.get("TENV_CACHE_DIR")
    return (Path(cache) if cache else user_cache()) / "stamps"


def _file(key: str) -> Path:
    return stamps_folder() / f"{key}.json"


def noted_stamps(key: str) -> dict[str, Stamp]:
    """Return the noted stamps by file name; empty where none were noted or can be read."""
    with contextlib.suppress(OSError, ValueError, RecursionError, TypeError, AttributeError):
        rows = json.loads(read_regular(_file(key))).items()
        return {name: (size, time) for name, (size, time) in rows if type(size) is type(time) is int}
    return {}


def note_stamps(key: str, stamps: Mapping[str, Stamp]) -> None:
    """Note the stamps of files whose digests are right, if possible; without them digests are compared again."""
    with contextlib.suppress(StorageError, OSError):
        write_atomic(_file(key), json.dumps(stamps))
