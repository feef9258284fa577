"""Digests of the files that uv unpacks into its cache, computed while it still fetches other wheels.

A wheel comes into the cache as a whole, as a folder below ``archive-v0`` (uv 0.13). Where uv keeps wheels elsewhere,
nothing is found here, and their files are hashed when they are in the environment.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

from tenv.core.hashing import hash_regular

__all__ = ["Hashed", "hashed_ahead"]

Hashed = dict[tuple[int, int], tuple[int, int, str]]
"""By the device and number of a file: its size, the time of its last change in nanoseconds, and then its digest."""

_SECONDS = 0.05
_ROOM = 1 << 18


@contextlib.contextmanager
def hashed_ahead(cache: Path, found: Hashed) -> Iterator[None]:
    """Hash what comes into uv's cache while the body runs.

    Args:
        cache: The folder of the cache.
        found: Gets the files. One that changes after it was hashed has another time.
    """
    there, ended = _wheels(cache), Event()
    thread = Thread(target=_hash_new, args=(cache, there, found, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _wheels(cache: Path) -> set[str]:
    return {os.fspath(path) for path in cache.glob("archive-v*/*")}


def _hash_new(cache: Path, there: set[str], found: Hashed, ended: Event) -> None:
    while not ended.wait(_SECONDS):
        for wheel in sorted(_wheels(cache) - there):
            there.add(wheel)
            _hash_wheel(wheel, found, ended)


def _hash_wheel(folder: str, found: Hashed, ended: Event) -> None:
    room = memoryview(bytearray(_ROOM))
    for entry in _files(folder):
        if ended.is_set():
            return
        with contextlib.suppress(OSError):
            info = entry.stat(follow_symlinks=False)
            digest = hash_regular(entry.path, hashlib.sha256(usedforsecurity=False), room)
            found[info.st_dev, info.st_ino] = info.st_size, info.st_mtime_ns, f"sha256:{digest}"


def _files(folder: str) -> "Iterator[os.DirEntry[str]]":
    """Yield the files below a folder, no links; what vanishes meanwhile is left out."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)
            elif entry.is_file(follow_symlinks=False):
                yield entry
