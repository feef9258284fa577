"""Write a target with all of its files as one file, and take an environment's files from such a bundle."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenv.audits import sbom
from tenv.checks.lock_verdict import judge_lock
from tenv.core.carried_files import CarriedFiles
from tenv.core.dataclass import dataclass
from tenv.core.errors import (
    BundleRefusedError,
    EnvironmentBusyError,
    HashMismatchError,
    HostError,
    LockStaleError,
    UsageError,
)
from tenv.core.files import digest, digest_bytes, exclusive, open_regular, read_regular, storage_errors, write_atomic
from tenv.core.output_file import require_output
from tenv.core.part_file import large_file
from tenv.core.progress import Bytes, Transfer
from tenv.core.versions import Version
from tenv.host.machine import current_platform
from tenv.install.bundle_file import BundleReader, Head, Member, is_bundle, is_plain, twins, write_bundle
from tenv.locks.lock import Lock
from tenv.locks.lock_features import features_of, take
from tenv.locks.lock_file import parse_lock
from tenv.sources.archives.download import RemoteFile
from tenv.sources.archives.gathering import fetcher_of
from tenv.sources.archives.store import Store, bundles_folder, default_store, unpacked_bundle
from tenv.sources.interface import CarriedFile, sources
from tenv.sources.wheels.managed_pythons import KEY as PYTHON
from tenv.sources.wheels.managed_pythons import PythonArchive
from tenv.targets.search import Target, require_features
from tenv.verbs.bundle_trust import Trust, adopt, require_trust, unpacked_place

if TYPE_CHECKING:
    from tenv.project.context import Context

_WEB = ("http://", "https://")
_READING = "tenv create --bundle"


# Writing


@dataclass(frozen=True, slots=True)
class Bundled:
    """A written bundle."""

    path: Path
    """Its file."""
    head: Head
    """Its head."""
    digest: str
    """The digest of the head, which stands for every byte."""
    bytes: int
    """Its size."""
    lock_digest: str
    """The digest of its lock."""

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
            "features": None if head.features is None else list(head.features),
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


def _require_outputs(target: str, path: Path, bill: Path | None) -> None:
    """Refuse to write a bundle or its bill of materials over a file of another kind, or to standard output."""
    require_output(path, "-o", "a bundle", is_bundle)
    if bill:
        sbom.require_library()
        if bill.resolve() == path.resolve():
            raise UsageError(f"`--sbom {bill}` names the file of the bundle", hint=f"`--sbom {target}.cdx.json`")
        require_output(bill, "--sbom", "a bill of materials", sbom.is_bill)


def bundle(
    context: "Context",
    name: str | None,
    path: Path | None,
    platforms: Sequence[str] = (),
    minor: str = "",
    bill: Path | None = None,
    features: Sequence[str] | None = None,
    *,
    with_python: bool = False,
) -> Bundled:
    """Write the bundle of a target.

    Args:
        context: The context of the verb.
        name: The target; None for the default one.
        path: The file; None for one with the target's name in the working folder.
        platforms: The platforms; empty for all of the lock.
        minor: The only Python minor whose wheels are carried; empty for all of the lock.
        bill: The file for its bill of materials; None for none.
        features: The only features whose files are carried; None for all of the lock.
        with_python: Whether uv's Python for each platform is carried.

    Raises:
        LockMissingError, LockStaleError: The lock can't be installed.
        UsageError: The lock has no such platform or Python, or a row that is no file.
        FormatError: There is no library for a bill of materials.
        NetworkError: A file can't be fetched.
    """
    target = context.find_target(name)
    path = path or Path(f"{target.name}.tenv")
    _require_outputs(target.name, path, bill)
    require_features(target, features or ())
    whole = judge_lock(target).require(target)
    texts = {file.stem: read_regular(file) for file in target.files}
    lock = whole if features is None else take(whole, features)
    minors = locked_minors(lock, platforms, minor)
    rows = _carried(lock, minors)
    store, names = collect(context, target, lock, minors)
    files = [completed(row, names, store) for row in rows.values()]
    files += _pythons(context, target, lock, minors, store) if with_python else []
    _require_names(files)
    head = Head(
        target.name,
        tuple(minors),
        minor,
        tuple(Member.of(f"manifests/{stem}.toml", text) for stem, text in texts.items()),
        Member.of(f"locks/{target.name}.lock", lock.text),
        tuple(sorted(files, key=lambda row: (row.kind, row.name, row.sha256))),
        features=None if features is None else tuple(one for one in features_of(whole) if one in features),
    )
    digest = _write(context, path, head, (*texts.values(), lock.text), store)
    if bill:
        write_atomic(bill, sbom.sbom(head, lock, store))
    return Bundled(path, head, digest, path.stat().st_size, lock.digest())


def locked_minors(lock: Lock, asked: Sequence[str], minor: str) -> dict[str, str]:
    """Return the Python minor that counts on each platform; empty for all.

    Args:
        lock: The lock.
        asked: The platforms; empty for all of the lock.
        minor: The only Python minor whose wheels count; empty for all.

    Raises:
        UsageError: The lock has no such platform or Python.
    """
    for platform in asked:
        if platform not in lock.platforms:
            raise UsageError(
                f"the lock of {lock.target} is for {', '.join(lock.platforms)}, not for {platform}",
                hint=f"`--platform {lock.platforms[0]}`",
            )
    chosen = sorted(set(asked or lock.platforms))
    for platform in chosen:
        known = lock.python_minors(platform)
        if minor and minor not in known:
            has = f"Python {', '.join(known)}" if known else "no Python"
            raise UsageError(f"`--python {minor}`: the lock of {lock.target} has {has} on {platform}")
    return dict.fromkeys(chosen, minor)


def collect(
    context: "Context", target: Target, lock: Lock, minors: Mapping[str, str]
) -> tuple[Store, Mapping[str, str]]:
    """Fetch the files of a lock into the store.

    Returns:
        The store, and the name of each file that the lock has no name of, by sha256.

    Raises:
        NetworkError: A file can't be fetched.
    """
    store = default_store(context.progress.say, context.unpack_limits())
    names: dict[str, str] = {}
    for source in sources():
        names |= source.collect(context, store, lock, target.manifest, minors)
    return store, names


def carried_rows(lock: Lock, minors: Mapping[str, str]) -> Iterator[CarriedFile]:
    """Yield the files of a lock for each platform and source; raises UsageError for a row that is no file."""
    for platform, minor in minors.items():
        for source in sources():
            yield from source.carried(lock, platform, minor)


def _carried(lock: Lock, minors: Mapping[str, str]) -> dict[str, CarriedFile]:
    """Return the files of a lock by sha256, each once."""
    found: dict[str, CarriedFile] = {}
    for row in carried_rows(lock, minors):
        known = found.get(row.sha256, row)
        named = known if known.name else replace(row, platforms=known.platforms)
        found[row.sha256] = replace(named, platforms=tuple(sorted({*known.platforms, *row.platforms})))
    return found


def _pythons(
    context: "Context", target: Target, lock: Lock, minors: Mapping[str, str], store: Store
) -> Iterator[CarriedFile]:
    """Fetch uv's Python for each platform: of the named minor, or of the one that `tenv create` prefers."""
    uv, cache = context.uv(), context.environ.get("UV_PYTHON_CACHE_DIR", "")
    for platform, named in minors.items():
        if own := lock.conda_python(platform):
            raise UsageError(f"`--with-python`: {target.name} has Python {own} as a conda package on {platform}")
        known = lock.python_minors(platform) or target.manifest.python_minors()
        if not known:
            raise UsageError(f"`--with-python`: {target.name} has no Python on {platform}")
        minor = named or max(known, key=Version)
        context.progress.step(f"fetching Python {minor} for {platform}")
        with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
            archive, file = uv.fetch_archive(platform, minor, Path(folder), cache)
            sha256 = digest(file)
            store.keep(file, sha256)
        yield CarriedFile(PYTHON, archive.name, sha256, store.file(sha256).stat().st_size, (platform,))


def completed(row: CarriedFile, names: Mapping[str, str], store: Store) -> CarriedFile:
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
        try:
            with large_file(path) as file:
                return write_bundle(file, head, texts, lambda row: store.file(row.sha256), advance)
        except HashMismatchError as error:
            for row in head.files:
                store.has(row.sha256)  # drops a damaged one
            error.hint = "the store has dropped it: run the same command again"
            raise


# Reading


@dataclass(frozen=True, slots=True)
class BundleRequest:
    """The environment that a bundle is opened for."""

    place: str
    """The path or the address of the bundle."""
    target: str | None
    """The target that it must be of; None for any."""
    python: str | None
    """The Python that the user names; None for none."""
    features: tuple[str, ...] | None
    """The features that the user names; None for none."""
    trust: Trust
    """The word of the user for it."""
    dry_run: bool = False
    """Whether nothing is written to the user's folder."""
    prefix: Path | None = None
    """The folder that the user names for the environment; None for the usual one."""
    anew: bool = False
    """Whether the environment that is there is put aside."""


@contextmanager
def opened(context: "Context", request: BundleRequest) -> "Iterator[tuple[Context, str, str | None]]":
    """Compare a bundle with its digests, unpack the files of this platform, and yield how to create its environment.

    Yields:
        The context that takes files from the bundle alone, the target, and the Python.

    Raises:
        BundleRefusedError: It is damaged, or its lock names other files.
        LockStaleError: Its lock is not the one of the target here, or not of the named digest.
        UsageError: Nobody vouches for it, or it lacks the files of that Python or of a feature.
        NetworkError: It can't be downloaded.
        ForeignFolderError: The folder of the environment has files that are not tenv's; nothing is unpacked.
    """
    if request.prefix is not None:  # before a download
        _require_prefix(context, request, request.target or "")
    with unpacked_bundle() as folder:
        context, carried = _taken(context, request, folder)
        python = carried.minor or None if request.python is None else request.python
        yield replace(context, offline=True, carried=carried), carried.target, python
    if _is_web(request.place):
        path = _download_path(request.place)
        with suppress(EnvironmentBusyError), exclusive(path, _READING, context.progress.say, 0):
            path.unlink(missing_ok=True)  # unless another command downloads it by now


def _taken(context: "Context", request: BundleRequest, folder: Path) -> "tuple[Context, CarriedFiles]":
    """Return the unpacked files, and the context that knows their target.

    A download of an earlier command that proves damaged, or of another lock than the one here, is begun anew once.
    """
    place = request.place
    if not _is_web(place):
        if "://" in place:
            raise UsageError(f"`--bundle {place}`: a bundle is a file, or at an address of http:// or https://")
        return _unpacked(context, Path(place), place, request, folder)
    path, shown = _download_path(place), place.partition("?")[0]
    with exclusive(path, _READING, context.progress.say):
        again = path.exists()
        while True:
            _download(context, place, path)
            home = Path(tempfile.mkdtemp(dir=folder))
            try:
                return _unpacked(context, path, shown, request, home)
            except (BundleRefusedError, LockStaleError) as error:
                shutil.rmtree(home)
                if again or isinstance(error, BundleRefusedError):
                    path.unlink(missing_ok=True)
                if not again:
                    raise
                again = False


def _is_web(place: str) -> bool:
    return place.lower().startswith(_WEB)


def _download_path(url: str) -> Path:
    return bundles_folder() / f"{digest_bytes(url.encode())}.part"


def _download(context: "Context", url: str, path: Path) -> None:
    fetcher = fetcher_of(context)
    name = url.partition("?")[0].rpartition("/")[2] or "bundle"
    context.progress.step(f"downloading {name}", Bytes(0))
    fetcher.on_bytes = lambda one, done, total: context.progress.transfers({one: Transfer(one, done, total or done)})
    fetcher.file(RemoteFile(name, url, compared=True), path)


def _unpacked(
    context: "Context", path: Path, shown: str, request: BundleRequest, folder: Path
) -> "tuple[Context, CarriedFiles]":
    if not path.is_file():
        raise UsageError(
            f"{shown} is no regular file, and a bundle is one" if path.exists() else f"there is no bundle {shown}"
        )
    with storage_errors(f"can't read {path}"), open_regular(path) as file:
        reader = BundleReader(file, shown)
        found = reader.open()
        head, lock = found.head, parse_lock(found.lock, f"{reader.shown}: {found.head.lock.name}", found.head.target)
        if request.target not in (None, head.target):
            raise UsageError(f"{shown} is a bundle of {head.target}, not of {request.target}")
        if (platform := current_platform()) not in head.platforms:
            raise HostError(f"{shown} has files for {', '.join(head.platforms)}; this host is {platform}")
        _require_files(head, lock, reader)
        _require_prefix(context, request, head.target)
        carried = CarriedFiles(folder, shown, head.target, head.python, head.features)
        new = require_trust(context, found, reader, request.trust)
        named = request.python if request.python in lock.python_minors(platform) else None
        carried.require(named or "", {*(request.features or ())} & {*features_of(lock)})
        _unpack(context, reader, head, carried)
        if request.trust.whole:
            _vouch_for_pythons(head, carried)
    if new and request.dry_run:
        place = unpacked_place(folder, found)
        context = replace(context, places=replace(context.places, places=(*context.places.places, place)))
    elif new:
        adopt(context, found, new, shown)
    return context, carried


def _require_prefix(context: "Context", request: BundleRequest, target: str) -> None:
    """Raise the error of `create` for a folder of others, before gigabytes are unpacked."""
    environment = context.environment(target, request.prefix)
    environment.check_ours()
    fault = None if request.anew else context.fault_of(environment, target)
    if fault and not fault.is_ours:
        raise fault.error()


def _require_files(head: Head, lock: Lock, reader: BundleReader) -> None:
    """Raise BundleRefusedError if a bundle has other files than its lock names for its platforms and Python."""
    if unknown := [platform for platform in head.platforms if platform not in lock.platforms]:
        raise reader.refusal(f"is altered: its lock has no platform {unknown[0]}")
    if unknown := [name for name in head.features or () if name not in features_of(lock)]:
        raise reader.refusal(f"is altered: its lock has no feature {unknown[0]}")
    lock = lock if head.features is None else take(lock, head.features)
    try:
        minors = locked_minors(lock, head.platforms, head.python)
        wanted, there = _carried(lock, minors), {row.sha256: row for row in head.files}
    except UsageError as error:
        raise reader.refusal(f"is altered: {error.message}") from error
    _require_pythons(head, minors, lock, reader)
    for row in head.files:
        if row.sha256 not in wanted and row.kind != PYTHON:
            raise reader.refusal(f"is altered: its lock does not name {row.name} ({row.sha256})")
    for sha256, row in wanted.items():
        other = there.get(sha256)
        if other is None:
            raise reader.refusal(f"is altered: {row.name or sha256} of its lock is not in it")
        same = (row.kind, row.platforms) == (other.kind, other.platforms) and row.name in ("", other.name)
        if not same or row.size not in (None, other.size):
            raise reader.refusal(f"is altered: its head describes {row.name or sha256} in another way than its lock")


def _require_pythons(head: Head, minors: Mapping[str, str], lock: Lock, reader: BundleReader) -> None:
    """Raise BundleRefusedError unless each Python is the only one of its platform, and one that the lock is for."""
    seen = set()
    for row in head.files:
        if row.kind != PYTHON:
            continue
        archive = PythonArchive.parse(row.name)
        if archive is None or row.platforms != (archive.platform,) or archive.platform not in minors:
            raise reader.refusal(f"is altered: {row.name} in it is no Python for its platforms")
        known = [minors[archive.platform]] if minors[archive.platform] else lock.python_minors(archive.platform)
        if archive.platform in seen or (known and archive.minor not in known):
            raise reader.refusal(f"is altered: its lock is not for {row.name}")
        seen.add(archive.platform)


def _vouch_for_pythons(head: Head, carried: CarriedFiles) -> None:
    """Write uv's table of Pythons: the digest of the bundle vouches for them, which no lock names."""
    for row in head.files:
        if (archive := PythonArchive.parse(row.name)) and archive.place(carried.pythons).is_file():
            write_atomic(carried.python_table, archive.table(row.sha256))


def _unpack(context: "Context", reader: BundleReader, head: Head, carried: CarriedFiles) -> None:
    platform = current_platform()
    total, done = sum(row.size or 0 for row in head.files), 0
    context.progress.step(f"comparing and unpacking the bundle of {head.target}", Bytes(total))

    def place(row: CarriedFile) -> Path | None:
        if platform not in row.platforms:
            return None
        if row.kind == PYTHON and (archive := PythonArchive.parse(row.name)):
            path = archive.place(carried.pythons)
            path.parent.mkdir(parents=True)
            return path
        return carried.wheels / row.name if row.kind == "wheels" else carried.files / row.sha256

    def advance(count: int) -> None:
        nonlocal done
        done += count
        context.progress.transfers({head.target: Transfer(head.target, done, total)})

    with storage_errors(f"can't write {carried.folder}"):
        carried.wheels.mkdir()
        carried.files.mkdir()
        reader.unpack(head, place, advance)
