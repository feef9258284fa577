"""Checks after uv has installed wheels: foreign files in tenv's places, changed files of its cache, old byte code.

uv places the files in ``NAME.data/data`` of a wheel anywhere in the prefix, over existing files. A RECORD need not name
such a file, so tenv's places are compared before and after.

uv compares the digest of a wheel when it fetches it, and links the unpacked files from its cache into environments. An
edit in one environment then changes the cache, and arrives in the next one.

uv leaves the byte code of modules in folders that stay, such as ``six.py`` in site-packages. Python compares only the
size and the whole seconds of the source, and runs the old module where a new one of the same size came within a second.
"""

import contextlib
import operator
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tenv.core.errors import UnsafePackageError
from tenv.core.file_stamps import Stamp, note_stamps, noted_stamps, stamp
from tenv.core.files import read_regular, storage_errors, write_atomic
from tenv.core.names import dist_info
from tenv.core.prefix import LOCK_NOTE, OWN
from tenv.environment.installed_files import Expected
from tenv.environment.integrity import check
from tenv.locks.lock import Wheel
from tenv.sources.wheels.installed import Wheels

_PLACES = (*OWN, "conda-meta", "pyvenv.cfg")
_Seen = dict[str, tuple[int, int, int]]


@contextmanager
def own_files_guarded(prefix: Path) -> Iterator[None]:
    """Run an installer, and remove the files that it put where tenv, rattler or Python keep their own.

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
            hint="`tenv diff` shows which wheels are new; remove it from the manifest and report it to its maintainers",
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


_NAME, _OWNER = operator.attrgetter("name"), operator.attrgetter("owner")


def drop_cache_notes(there: Wheels, wheels: Iterable[Wheel]) -> None:
    """Remove uv's notes on the local files of wheels, which an installation from an index does not have.

    uv 0.13 writes ``uv_cache.json`` for a file of a folder, to see later whether it has changed.
    """
    names = {wheel.name for wheel in wheels}
    for info in there.distributions():
        note = info / "uv_cache.json"
        if dist_info(info)[0] in names and note.is_file():
            record = info / "RECORD"
            start = f"{info.name}/{note.name},".encode()
            kept = [line for line in read_regular(record).splitlines(keepends=True) if not line.startswith(start)]
            write_atomic(record, b"".join(kept), within=there.prefix)
            note.unlink()


def record_stamps(wheels: Wheels) -> dict[str, tuple[int, int]]:
    """Return the inode and the time of the ``RECORD`` of each wheel, by its name, to find those installed anew."""
    found = {}
    for name in wheels.own_files(wheels.names()):
        status = (wheels.prefix / name).stat()
        found[name] = (status.st_ino, status.st_mtime_ns)
    return found


def changed_wheels(
    there: Wheels, wheels: Sequence[Wheel], rows: Sequence[Expected], old: Mapping[str, tuple[int, int]]
) -> tuple[str, ...]:
    """Return the names of new wheels with files that differ from their ``RECORD``.

    A file that is a hard link, as those into the cache are, is compared, unless it has the stamp that was noted when
    its digest was right. A path of several wheels is left to those who decide between them. A ``RECORD`` that lists
    nothing counts as changed: uv 0.13 does not report that the disk did not take it.

    Args:
        there: The wheels of the prefix.
        wheels: The wheels of the lock.
        rows: The files of these wheels.
        old: The result of `record_stamps` before the installation.
    """
    now = record_stamps(there)
    claims, listed = Counter(map(_NAME, rows)), Counter(map(_OWNER, rows))
    new = {row.owner for row in rows if row.name in now and now[row.name] != old.get(row.name)}
    files: defaultdict[str, list[Expected]] = defaultdict(list)
    for row in rows:
        if row.digest and row.owner in new and claims[row.name] == 1:
            files[row.owner].append(row)
    changed = []
    for wheel in wheels:
        if wheel.name not in new:
            continue
        mine, known = files[wheel.name], noted_stamps(_key(wheel))
        linked = dict(_linked(there.prefix, mine, known))
        unsure = [row for row in mine if row.name in linked and linked[row.name] != known.get(row.name)]
        if listed[wheel.name] == 1 or check(there.prefix, unsure).owners:  # 1: the RECORD itself
            changed.append(wheel.name)
        elif unsure:
            note_stamps(_key(wheel), {**known, **linked})
    return tuple(changed)


def _key(wheel: Wheel) -> str:
    return f"wheel-{wheel.sha256}"


def _linked(prefix: Path, rows: Sequence[Expected], known: Mapping[str, Stamp]) -> Iterator[tuple[str, Stamp]]:
    """Yield the stamps of the files that are hard links, which get their noted rights back."""
    root = os.fspath(prefix)
    for row in rows:
        path = f"{root}{os.sep}{row.name}"
        with contextlib.suppress(OSError):  # `tenv verify` reports it
            if os.lstat(path).st_nlink > 1:
                yield row.name, stamp(path, known.get(row.name))


def remove_old_bytecode(prefix: Path, before: Iterable[Expected], now: Iterable[Expected], elsewhere: str = "") -> None:
    """Remove the byte code of the modules that are no longer there or have another content.

    Args:
        prefix: The environment.
        before: The files of its wheels before the update.
        now: Those after it.
        elsewhere: The folder in which Python keeps byte code outside of environments (PYTHONPYCACHEPREFIX), below it by
            the path of the module; empty for none.

    Raises:
        StorageError: A file can't be removed.
    """
    digests = {row.name: row.digest for row in now}
    root = prefix.resolve()
    for row in before:
        if row.name.endswith(".py") and not (row.digest and row.digest == digests.get(row.name)):
            folder, name = os.path.split(row.name)
            cache = root / folder / "__pycache__"
            if cache.resolve() == cache and cache.is_relative_to(root):  # a RECORD may name files anywhere
                _remove(cache, name.removesuffix(".py"))
                if elsewhere:
                    _remove(Path(elsewhere) / (prefix / folder).relative_to(prefix.anchor), name.removesuffix(".py"))


def _remove(cache: Path, module: str) -> None:
    with storage_errors(f"can't remove byte code in {cache}"):
        names = os.listdir(cache) if cache.is_dir() else []  # noqa: PTH208 (names alone)
        for name in names:
            if name.startswith(f"{module}.") and name.endswith(".pyc"):
                (cache / name).unlink(missing_ok=True)
