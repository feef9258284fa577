"""Write a target with all of its files as one file, and take an environment's files from such a bundle."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenv.checks.lock_verdict import judge_lock
from tenv.core.carried_files import CarriedFiles
from tenv.core.dataclass import dataclass
from tenv.core.errors import (
    BundleRefusedError,
    FileExistsAlreadyError,
    HashMismatchError,
    HostError,
    UsageError,
)
from tenv.core.files import digest_bytes, open_regular, read_regular, storage_errors
from tenv.core.progress import Bytes, Transfer
from tenv.host.machine import current_platform
from tenv.install.bundle_file import Bundle, BundleReader, Head, Member, is_bundle, is_plain, twins, write_bundle
from tenv.locks.lock import Lock
from tenv.locks.lock_file import parse_lock
from tenv.sources.archives.download import RemoteFile
from tenv.sources.archives.gathering import fetcher_of
from tenv.sources.archives.store import Store, bundles_folder, default_store, unpacked_bundle
from tenv.sources.interface import CarriedFile, sources
from tenv.verbs.bundle_trust import Trust, adopt, require_trust

if TYPE_CHECKING:
    from tenv.project.context import Context

__all__ = ["Bundled", "bundle", "opened"]

_WEB = ("http://", "https://")


# Writing


@dataclass(frozen=True, slots=True)
class Bundled:
    """A written bundle.

    Attributes:
        path: Its file.
        head: Its head.
        digest: The digest of the head, which stands for every byte.
        bytes: Its size.
        lock_digest: The digest of its lock.
    """

    path: Path
    head: Head
    digest: str
    bytes: int
    lock_digest: str

    def to_json(self) -> dict[str, Any]:
        """Return the values for `--json`."""
        head = self.head
        return {
            "target": head.target,
            "file": str(self.path),
            "bytes": self.bytes,
            "digest": self.digest,
            "lock_digest": self.lock_digest,
            "platforms": list(head.platforms),
            "python": head.python or None,
            "files": [
                {
                    "kind": row.kind,
                    "name": row.name,
                    "sha256": row.sha256,
                    "size": row.size,
                    "platforms": list(row.platforms),
                }
                for row in head.files
            ],
        }


def bundle(
    context: "Context", name: str | None, path: Path | None, platforms: Sequence[str] = (), minor: str = ""
) -> Bundled:
    """Write the bundle of a target.

    Args:
        context: The context of the verb.
        name: The target; None for the default one.
        path: The file; None for one with the target's name in the working folder.
        platforms: The platforms; empty for all of the lock.
        minor: The only Python minor whose wheels are carried; empty for all of the lock.

    Raises:
        LockMissingError, LockStaleError: The lock can't be installed.
        UsageError: The lock has no such platform or Python, or a row that is no file.
        NetworkError: A file can't be fetched.
    """
    target = context.find_target(name)
    path = path or Path(f"{target.name}.tenv")
    if path.exists() and not is_bundle(path):
        raise FileExistsAlreadyError(f"{path} exists, and is no bundle", hint="`-o FILE` names another file")
    lock = judge_lock(target).require(target)
    chosen = _platforms(lock, platforms)
    rows = _carried(lock, _minors(lock, chosen, minor))
    store = default_store(context.progress.say, context.unpack_limits())
    names: dict[str, str] = {}
    for source in sources():
        names |= source.collect(context, store, lock, target.manifest, _minors(lock, chosen, minor))
    files = [_completed(row, names, store) for row in rows.values()]
    _require_names(files)
    texts = {file.stem: read_regular(file) for file in target.files}
    head = Head(
        target.name,
        chosen,
        minor,
        tuple(Member.of(f"manifests/{stem}.toml", text) for stem, text in texts.items()),
        Member.of(f"locks/{target.name}.lock", lock.text),
        tuple(sorted(files, key=lambda row: (row.kind, row.name, row.sha256))),
    )
    digest = _write(context, path, head, (*texts.values(), lock.text), store)
    return Bundled(path, head, digest, path.stat().st_size, lock.digest())


def _platforms(lock: Lock, asked: Sequence[str]) -> tuple[str, ...]:
    for platform in asked:
        if platform not in lock.platforms:
            raise UsageError(
                f"the lock of {lock.target} is for {', '.join(lock.platforms)}, not for {platform}",
                hint=f"`--platform {lock.platforms[0]}`",
            )
    return tuple(sorted(set(asked or lock.platforms)))


def _minors(lock: Lock, platforms: Sequence[str], minor: str) -> dict[str, str]:
    """Return the Python minor that counts on each platform; raises UsageError for one that the lock lacks."""
    for platform in platforms:
        known = lock.python_minors(platform)
        if minor and minor not in known:
            has = f"Python {', '.join(known)}" if known else "no Python"
            raise UsageError(f"`--python {minor}`: the lock of {lock.target} has {has} on {platform}")
    return dict.fromkeys(platforms, minor)


def _carried(lock: Lock, minors: Mapping[str, str]) -> dict[str, CarriedFile]:
    """Return the files of a lock by sha256, each once."""
    found: dict[str, CarriedFile] = {}
    for platform, minor in minors.items():
        for source in sources():
            for row in source.carried(lock, platform, minor):
                known = found.get(row.sha256, row)
                named = known if known.name else replace(row, platforms=known.platforms)
                found[row.sha256] = replace(named, platforms=tuple(sorted({*known.platforms, platform})))
    return found


def _completed(row: CarriedFile, names: Mapping[str, str], store: Store) -> CarriedFile:
    """Return a file with its name and its size."""
    size = store.file(row.sha256).stat().st_size
    return replace(row, name=row.name or names[row.sha256], size=size)


def _require_names(files: Sequence[CarriedFile]) -> None:
    """Raise UsageError for a name that a reader would refuse, or for two wheels that no folder can hold."""
    if row := next((row for row in files if not is_plain(row)), None):
        raise UsageError(f"the lock has a file named {row.name}, so no bundle can carry it")
    if found := twins(files):
        name, platform = found[0]
        raise UsageError(f"the lock has several files named {name} on {platform}, so no bundle can carry it")


def _write(context: "Context", path: Path, head: Head, texts: Sequence[bytes], store: Store) -> str:
    context.progress.step(f"writing {path}", Bytes(sum(row.size or 0 for row in head.files)))
    total, done = sum(row.size or 0 for row in head.files), 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        context.progress.transfers({path.name: Transfer(path.name, done, total)})

    with storage_errors(f"can't write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        part = Path(name)
        try:
            with os.fdopen(handle, "wb", buffering=0) as raw, _buffered(raw) as file:
                digest = write_bundle(file, head, texts, lambda row: store.file(row.sha256), advance)
            part.chmod(0o644)
            part.replace(path)
        except BaseException as error:
            part.unlink(missing_ok=True)
            if isinstance(error, HashMismatchError):
                _drop_damaged(head, store)
                error.hint = "the store has dropped it: run the same command again"
            raise
    return digest


def _buffered(raw: Any) -> Any:
    import io  # late: small headers are joined, and pieces of 4 MiB pass through

    return io.BufferedWriter(raw, 1 << 20)


def _drop_damaged(head: Head, store: Store) -> None:
    for row in head.files:
        store.has(row.sha256)


# Reading


@contextmanager
def opened(
    context: "Context", place: str, name: str | None, python: str | None, trust: Trust
) -> "Iterator[tuple[Context, str, str | None]]":
    """Compare a bundle with its digests, unpack the files of this platform, and yield how to create its environment.

    Args:
        context: The context of the verb.
        place: The path or the address of the bundle.
        name: The target that it must be of; None for any.
        python: The Python that the user names; None for none.
        trust: The word of the user for it.

    Yields:
        The context that takes files from the bundle alone, the target, and the Python.

    Raises:
        BundleRefusedError: It is damaged, or its lock names other files.
        LockStaleError: Its lock is not the one of the target here, or not of the named digest.
        UsageError: Nobody vouches for it.
        NetworkError: It can't be downloaded.
    """
    with unpacked_bundle() as folder:
        carried = CarriedFiles(folder)
        head = _taken(context, place, name, trust, carried)
        own = head.python if python is None and head.python else python
        yield replace(context, offline=True, carried=carried), head.target, own
    if place.startswith(_WEB):
        _download_path(place).unlink(missing_ok=True)


def _taken(context: "Context", place: str, name: str | None, trust: Trust, carried: CarriedFiles) -> Head:
    """Return the head of a bundle whose files were unpacked; a download that proves damaged is begun anew once."""
    if not place.startswith(_WEB):
        return _unpacked(context, Path(place), place, name, trust, carried)
    path = _download_path(place)
    again = path.exists()
    shown = place.partition("?")[0]
    while True:
        _download(context, place, path)
        try:
            return _unpacked(context, path, shown, name, trust, carried)
        except BundleRefusedError:
            path.unlink(missing_ok=True)
            if not again:
                raise
            again = False


def _download_path(url: str) -> Path:
    return bundles_folder() / f"{digest_bytes(url.encode())}.part"


def _download(context: "Context", url: str, path: Path) -> None:
    fetcher = fetcher_of(context)
    name = url.partition("?")[0].rpartition("/")[2] or "bundle"
    context.progress.step(f"downloading {name}", Bytes(0))
    fetcher.on_bytes = lambda one, done, total: context.progress.transfers({one: Transfer(one, done, total or done)})
    fetcher.file(RemoteFile(name, url, compared=True), path)


def _unpacked(
    context: "Context", path: Path, shown: str, name: str | None, trust: Trust, carried: CarriedFiles
) -> Head:
    if not path.is_file():
        raise UsageError(f"there is no bundle {path}")
    with storage_errors(f"can't read {path}"), open_regular(path) as file:
        reader = BundleReader(file, shown)
        found = reader.open()
        head, lock = found.head, _lock_of(found, reader)
        if name not in (None, head.target):
            raise UsageError(f"{shown} is a bundle of {head.target}, not of {name}")
        if (platform := current_platform()) not in head.platforms:
            raise HostError(f"{shown} has files for {', '.join(head.platforms)}; this host is {platform}")
        _require_files(head, lock, reader)
        new = require_trust(context, found, reader, trust)
        _unpack(context, reader, head, carried)
    if new:
        adopt(context, found, new, shown)
    return head


def _lock_of(found: Bundle, reader: BundleReader) -> Lock:
    return parse_lock(found.lock, f"{reader.shown}: {found.head.lock.name}", found.head.target)


def _require_files(head: Head, lock: Lock, reader: BundleReader) -> None:
    """Raise BundleRefusedError if a bundle has other files than its lock names for its platforms and Python."""
    if unknown := [platform for platform in head.platforms if platform not in lock.platforms]:
        raise reader.refusal(f"is altered: its lock has no platform {unknown[0]}")
    minors = _minors(lock, head.platforms, head.python)
    wanted, there = _carried(lock, minors), {row.sha256: row for row in head.files}
    for row in head.files:
        if row.sha256 not in wanted:
            raise reader.refusal(f"is altered: its lock does not name {row.name} ({row.sha256})")
    for sha256, row in wanted.items():
        other = there.get(sha256)
        if other is None:
            raise reader.refusal(f"is altered: {row.name or sha256} of its lock is not in it")
        same = (row.kind, row.platforms) == (other.kind, other.platforms) and row.name in ("", other.name)
        if not same or row.size not in (None, other.size):
            raise reader.refusal(f"is altered: its head describes {row.name or sha256} in another way than its lock")


def _unpack(context: "Context", reader: BundleReader, head: Head, carried: CarriedFiles) -> None:
    platform = current_platform()
    total, done = sum(row.size or 0 for row in head.files), 0
    context.progress.step(f"comparing and unpacking the bundle of {head.target}", Bytes(total))

    def place(row: CarriedFile) -> Path | None:
        if platform not in row.platforms:
            return None
        return carried.wheels / row.name if row.kind == "wheels" else carried.files / row.sha256

    def advance(count: int) -> None:
        nonlocal done
        done += count
        context.progress.transfers({head.target: Transfer(head.target, done, total)})

    with storage_errors(f"can't write {carried.folder}"):
        carried.wheels.mkdir()
        carried.files.mkdir()
        reader.unpack(head, place, advance)
