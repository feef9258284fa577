"""Whether files that uv took from its cache are those of the wheels.

uv compares the digest of a wheel when it fetches it, and links the unpacked files from its cache into environments. An
edit in one environment then changes the cache, and arrives in the next one.
"""

import operator
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tenv.core.file_stamps import Stamp, note_stamps, noted_stamps
from tenv.core.folder_size import MeasuredFolder
from tenv.environment.installed_files import Expected
from tenv.environment.integrity import check
from tenv.locks.lock import Wheel
from tenv.sources.wheels.installed import Wheels
from tenv.sources.wheels.unpacked_files import Hashed

__all__ = ["changed_wheels", "noted_files", "record_stamps"]

_NOWHERE = (-1, -1)
_NAME, _OWNER = operator.attrgetter("name"), operator.attrgetter("owner")


def record_stamps(wheels: Wheels) -> dict[str, tuple[int, int]]:
    """Return the inode and the time of the ``RECORD`` of each wheel, by its name, to tell which are installed anew."""
    found = {}
    for name in wheels.own_files(wheels.names()):
        status = (wheels.prefix / name).stat()
        found[name] = (status.st_ino, status.st_mtime_ns)
    return found


def noted_files(wheels: Sequence[Wheel]) -> dict[str, dict[str, Stamp]]:
    """Return the stamps of the files of wheels whose digests were right, by the sha256 of the wheel."""
    return {wheel.sha256: noted_stamps(_key(wheel)) for wheel in wheels}


def _key(wheel: Wheel) -> str:
    return f"wheel-{wheel.sha256}"


def changed_wheels(
    there: Wheels,
    wheels: Sequence[Wheel],
    rows: Sequence[Expected],
    old: Mapping[str, tuple[int, int]],
    measured: MeasuredFolder,
    noted: Mapping[str, Mapping[str, Stamp]],
    hashed: Hashed,
) -> tuple[str, ...]:
    """Return the names of new wheels with files that differ from their ``RECORD``.

    A file that is a hard link, as those into the cache are, is compared, unless its size and time are what was noted
    when its digest was right. A path of several wheels is left to those who decide between them. A ``RECORD`` that
    lists nothing counts as changed: uv 0.13 does not report that the disk did not take it.

    Args:
        there: The wheels of the prefix.
        wheels: The wheels of the lock.
        rows: The files of these wheels.
        old: What `record_stamps` returned before the installation.
        measured: The folder of packages after it.
        noted: What `noted_files` returned; of other wheels, it is read now.
        hashed: Files that were hashed when they came into uv's cache.
    """
    now = record_stamps(there)
    claims, listed = Counter(map(_NAME, rows)), Counter(map(_OWNER, rows))
    new = {row.owner for row in rows if row.name in now and now[row.name] != old.get(row.name)}
    files: defaultdict[str, list[Expected]] = defaultdict(list)
    for row in rows:
        if row.digest and row.owner in new and claims[row.name] == 1:
            files[row.owner].append(row)
    found, other, stamps = set[str](), list[Expected](), dict[str, dict[str, Stamp]]()
    for wheel in wheels:
        if wheel.name not in new:
            continue
        if listed[wheel.name] == 1:  # the RECORD itself
            found.add(wheel.name)
            continue
        mine = files[wheel.name]
        known = noted[wheel.sha256] if wheel.sha256 in noted else noted_stamps(_key(wheel))
        linked = dict(_stamps(there.prefix, mine, measured))
        if unsure := [row for row in mine if row.name in linked and linked[row.name] != known.get(row.name)]:
            numbers = (measured.numbers.get(f"{there.prefix}{os.sep}{row.name}", _NOWHERE) for row in unsure)
            seen = (hashed.get(number) for number in numbers)
            other += [row for row, was in zip(unsure, seen, strict=True) if was != (*linked[row.name], row.digest)]
            stamps[wheel.name] = {**known, **linked}
    if other:  # of all wheels at once, so that no thread waits for the last file of each
        found.update(check(there.prefix, other).owners)
    for wheel in wheels:
        if wheel.name in stamps and wheel.name not in found:
            note_stamps(_key(wheel), stamps[wheel.name])
    return tuple(wheel.name for wheel in wheels if wheel.name in found)


def _stamps(prefix: Path, rows: Sequence[Expected], measured: MeasuredFolder) -> Iterator[tuple[str, Stamp]]:
    """Yield the stamps of the files that are hard links."""
    root = os.fspath(prefix)
    for row in rows:
        path = f"{root}{os.sep}{row.name}"
        if stamp := measured.linked.get(path):
            yield row.name, stamp
            continue
        if path in measured.single:
            continue
        try:  # outside of the measured folder, or below a link in it
            status = os.lstat(path)
        except OSError:  # `tenv verify` reports it
            continue
        if status.st_nlink > 1:
            yield row.name, (status.st_size, status.st_mtime_ns)
