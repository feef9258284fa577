"""The size that wheels unpack to: by their directories before uv fetches them, and by the files that uv writes.

uv unpacks a wheel while it arrives, before its digest is known, and has no limit on its size.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from tenv.core.errors import NetworkError
from tenv.core.file_stamps import note_stamps, noted_stamps
from tenv.core.names import normalize
from tenv.core.unpack_limits import UnpackLimits
from tenv.locks.lock import Wheel

if TYPE_CHECKING:
    from tenv.core.progress import Progress
    from tenv.sources.wheels.uv import Uv

_SECONDS = 0.2
_CONNECTIONS = 8
_DEFLATE = 1032
"""The most bytes that one byte of deflate unpacks to (zlib's documentation, "Maximum Compression Factor")."""

_TEMPORARY = ".tmp"
"""The first letters of the folders that uv unpacks to, below its cache (uv 0.11 to 0.13)."""


def check_directories(uv: "Uv", wheels: Sequence[Wheel], progress: "Progress") -> None:
    """Refuse a wheel whose directory lists more than the limits, before it is fetched.

    Each wheel is asked for once. One whose server answers no range requests is left to `watched_unpacking`, and so is
    one that is too small to reach the limits.

    Raises:
        ArchiveRefusedError: A wheel unpacks to more than the limits.
    """
    limits, unknown = uv.limits, _unknown_directories(wheels, uv.limits)
    if not unknown or uv.offline:
        return
    from concurrent.futures import ThreadPoolExecutor  # late: only for wheels that were never installed

    from tenv.sources.wheels.urls import wheel_urls

    progress.step("reading the directories of wheels", len(unknown))
    try:
        urls = wheel_urls(uv, unknown)
    except NetworkError:  # uv reports it
        return

    def ask(wheel: Wheel) -> tuple[Wheel, tuple[int, int, int] | None]:
        found = _volume(uv, urls[wheel.sha256]) if wheel.sha256 in urls else None
        progress.advance()
        return wheel, found

    pool = ThreadPoolExecutor(_CONNECTIONS)
    try:
        for wheel, found in pool.map(ask, unknown):
            if found:
                limits.check(wheel.file, wheel.size or found[2], *found[:2])
                note_stamps(_key(wheel), {wheel.file: found})
    finally:
        pool.shutdown(cancel_futures=True)


def _unknown_directories(wheels: Sequence[Wheel], limits: UnpackLimits) -> list[Wheel]:
    """Return the wheels whose directory was never read and that are large enough to reach the limits.

    Raises:
        ArchiveRefusedError: A directory that was read lists more than the limits.
    """
    unknown = []
    for wheel in wheels:
        size = wheel.size or limits.bytes
        if size * _DEFLATE <= limits.most(size):
            continue
        if noted := noted_stamps(_key(wheel)).get(wheel.file):
            limits.check(wheel.file, wheel.size or noted[2] or size, *noted[:2])
        else:
            unknown.append(wheel)
    return unknown


def _key(wheel: Wheel) -> str:
    return f"unpacked-{wheel.sha256}"


def _volume(uv: "Uv", url: str) -> tuple[int, int, int] | None:
    """Return the bytes and the number of files that the directory of a wheel lists, and the wheel's own bytes.

    Returns:
        None if it can't be read.
    """
    import zipfile  # late: only here

    from tenv.core.damaged_archives import DAMAGED_ZIP
    from tenv.core.http import Interrupted, Unanswered
    from tenv.sources.wheels.metadata import open_wheel

    local = urlsplit(url).scheme == "file"
    unread: tuple[type[Exception], ...] = (NetworkError, Unanswered, Interrupted, *DAMAGED_ZIP)
    try:
        with zipfile.ZipFile(unquote(urlsplit(url).path) if local else open_wheel(uv.http, url)) as wheel:
            members = wheel.infolist()
            packed = wheel.fp.seek(0, os.SEEK_END) if wheel.fp else 0  # a lock of another tool may have no size
    except unread:
        return None
    return sum(member.file_size for member in members), len(members), packed


@contextlib.contextmanager
def watched_unpacking(wheels: Sequence[Wheel], limits: UnpackLimits) -> Iterator[Callable[[int], None]]:
    """Yield a function that refuses wheels that a running uv has unpacked beyond the limits.

    A directory may list less than a wheel holds. uv's folders do not name their wheel, so the largest wheel sets the
    limit. Where the body fails, the temporary folders of uv are removed.

    Args:
        wheels: The wheels that uv installs.
        limits: The limits on one wheel.
    """
    largest = max((wheel.size or limits.bytes for wheel in wheels), default=limits.bytes)
    folders: set[Path] = set()
    last = time.monotonic()

    def look(process: int) -> None:
        nonlocal last
        if time.monotonic() - last < _SECONDS:
            return
        folders.update(_open_folders(process))
        for folder in folders:
            limits.check(_name(folder, wheels), largest, *_size(folder))
        last = time.monotonic()

    try:
        yield look
    except BaseException:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _open_folders(process: int) -> Iterator[Path]:
    """Yield uv's temporary folders that a process writes to (Linux)."""
    with contextlib.suppress(OSError):
        for handle in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                path = handle.readlink()
                found = [place for place in path.parents if place.name.startswith(_TEMPORARY)]
                if found and path.is_absolute():
                    yield found[-1]


def _size(folder: Path) -> tuple[int, int]:
    """Return the bytes and the number of files below a folder, which may vanish meanwhile."""
    volume = entries = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                volume += os.lstat(f"{place}/{name}").st_size
            entries += 1
    return volume, entries


def _name(folder: Path, wheels: Sequence[Wheel]) -> str:
    """Return the wheel of a folder, as far as its content shows it."""
    with contextlib.suppress(OSError):
        there = {normalize(path.name.split("-")[0].partition(".")[0]) for path in folder.iterdir()}
        found = [wheel.file for wheel in wheels if wheel.name in there]
        if len(found) == 1:
            return found[0]
    return wheels[0].file if len(wheels) == 1 else "one of the wheels of the lock"
