"""Fetches and checks the conda packages of a lock, before the prefix changes."""

import posixpath
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass
from tenv.core.errors import LockCorruptError, UnsafePackageError
from tenv.core.prefix import META
from tenv.core.progress import Bytes, Progress, Transfer
from tenv.core.size_text import some_of
from tenv.core.unpack_limits import UnpackLimits
from tenv.core.untrusted import without_login
from tenv.locks.lock import CondaPackage, Lock
from tenv.rattler_api.cache import Content, PackageMembers, PackedFiles, in_cache, read_cache, read_packed
from tenv.rattler_api.lockfile import read_records
from tenv.rattler_api.network import Network
from tenv.rattler_api.records import Record

if TYPE_CHECKING:
    from tenv.sources.archives.store import Store

_LINK_SCRIPT = re.compile(r"(?:bin/\.|Scripts/\.)[^/]+-(?:pre-link|post-link|pre-unlink)\.(?:sh|bat)")
_RESERVED = re.compile(rf"{META}(/|$)|conda-meta/[^/]*\.json$|conda-meta/history$|\.tenv\.")
_NAMED = 3
_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Staged:
    """The fetched conda packages of a lock."""

    records: tuple[Record, ...] = ()
    """The packages."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The package of every file, by path relative to the prefix."""
    claims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The paths of all files of each package, relative to the prefix, by its name."""
    links: tuple[str, ...] = ()
    """The files that are symbolic links."""
    archives: Mapping[str, Path] = field(default_factory=dict)
    """The fetched packages that are not in the cache yet, by URL."""
    damaged: tuple[str, ...] = ()
    """Names of packages with damaged files in the cache."""
    notes: tuple[str, ...] = ()
    """Notes for the user."""


def stage(
    lock: Lock,
    platform: str,
    network: Network,
    progress: Progress,
    limits: UnpackLimits | None = None,
    *,
    thorough: bool = False,
) -> Staged:
    """Fetch every conda package of a lock for a platform, and check its content.

    Args:
        lock: The lock.
        platform: The platform.
        network: The network settings for channels.
        progress: Receives progress.
        limits: The limits on the unpacked size of a package; None for the default.
        thorough: Verify every file in the package cache by its digest.

    Raises:
        LockCorruptError: The lock has an invalid row.
        HashMismatchError: A package's bytes differ from the lock.
        NetworkError: A package can't be fetched.
        UnsafePackageError: A package would write outside the prefix or to a reserved path.
        ArchiveRefusedError: A package unpacks to more than the limits.
    """
    records = records_of(lock, platform)
    _compare(lock, platform, records)
    contents, damaged = read_cache(records, thorough=thorough)
    archives = dict[str, Path]()
    if missing := [record for record in records if record.url not in contents]:
        progress.step("downloading conda packages", Bytes(sum(record.size or 0 for record in missing)))
        archives, packed = fetch_packages(missing, network, limits or UnpackLimits(), _reporter(progress))
        contents |= {found.content.record.url: found.content for found in packed}
    return stage_contents([contents[record.url] for record in records], archives, damaged)


def records_of(lock: Lock, platform: str) -> tuple[Record, ...]:
    """Return the packages of a lock for a platform."""
    every = (Record.of(raw) for raw in read_records(lock.text, lock.target, platform))
    return tuple(record for record in every if record.url not in lock.left_out)


def cached_urls(lock: Lock, platform: str) -> frozenset[str]:
    """Return the URLs of the packages of a lock that are in the package cache; their files are not read."""
    return frozenset(record.url for record, _ in in_cache(records_of(lock, platform)))


def collect_packages(
    lock: Lock, platforms: Iterable[str], network: Network, progress: Progress, store: "Store"
) -> None:
    """Fetch the packages of some platforms into a store.

    Raises:
        LockCorruptError: The lock has an invalid row.
        NetworkError: A package can't be fetched, or its bytes differ from the lock.
    """
    new: dict[str, Record] = {}
    for platform in platforms:
        records = records_of(lock, platform) if lock.conda.get(platform) else ()
        _compare(lock, platform, records)
        new |= {record.url: record for record in records if not store.file(record.sha256 or "").is_file()}
    if not new:
        return
    from tenv.rattler_api.fetch import fetch  # late: as below

    progress.step("downloading conda packages", Bytes(sum(record.size or 0 for record in new.values())))
    for url, path in fetch([*new.values()], network, _reporter(progress)).items():
        store.keep(path, new[url].sha256 or "")
        path.unlink()


def fetch_packages(
    records: Sequence[Record],
    network: Network,
    limits: UnpackLimits,
    on_bytes: Callable[[str, int, int], None],
) -> tuple[dict[str, Path], list[PackedFiles]]:
    """Fetch packages; return their files by URL, and the content of each.

    Raises:
        HashMismatchError: A package's bytes differ from the lock.
        NetworkError: A package can't be fetched, or is not a conda package.
        ArchiveRefusedError: A package unpacks to more than the limits.
    """
    from tenv.rattler_api.fetch import fetch  # late: most packages are in the cache
    from tenv.sources.conda.package_reader import read_package

    members: dict[str, PackageMembers] = {}

    def read(record: Record, path: Path) -> None:
        members[record.url] = read_package(path, without_login(record.url), limits)

    archives = fetch(records, network, on_bytes, read)
    return archives, read_packed(members, records)


def _compare(lock: Lock, platform: str, records: Sequence[Record]) -> None:
    """Raise LockCorruptError if rattler reads the lock differently: tenv must install the packages that it checked."""
    faults = [fault for record in records if (fault := record.fault(platform))]
    if not faults and sorted(map(_identity, records)) != sorted(map(_identity, lock.conda.get(platform, ()))):
        faults = [f"rattler and tenv read its packages for {platform} differently"]
    if faults:
        hint = f"`tenv lock {lock.target}` replaces it"
        raise LockCorruptError(f"the lock of {lock.target}: {faults[0]}", hint=hint)


def _identity(row: Record | CondaPackage) -> tuple[str, ...]:
    return row.name, row.version, row.build, row.subdir, row.url, row.sha256, row.md5


def _reporter(progress: Progress) -> Callable[[str, int, int], None]:
    """Return a callback for downloads that passes all running ones to `progress` a few times a second."""
    running: dict[str, Transfer] = {}
    last = time.monotonic()

    def report(name: str, done: int, total: int) -> None:
        nonlocal last
        running[name] = Transfer(name, done, total)
        if time.monotonic() - last > _SECONDS or done == total:
            last = time.monotonic()
            progress.transfers(dict(running))

    return report


def stage_contents(
    contents: Sequence[Content], archives: Mapping[str, Path] | None = None, damaged: tuple[str, ...] = ()
) -> Staged:
    """Return the packages with their files.

    Args:
        contents: The packages.
        archives: Those that are not in the cache yet, by URL.
        damaged: Names of packages with damaged files in the cache.

    Raises:
        UnsafePackageError: A package would write outside the prefix or to a reserved path.
    """
    site = _site_packages(contents)
    files: dict[str, str] = {}
    claims: dict[str, tuple[str, ...]] = {}
    twice: defaultdict[str, set[str]] = defaultdict(set)
    for content in contents:
        package = content.record.name
        mine = claims[package] = tuple(_in_prefix(content, site))
        _check_names(mine, content.record)
        own = dict.fromkeys(mine, package)
        if len(own) == len(mine) and files.keys().isdisjoint(own):
            files.update(own)
            continue
        for name in mine:
            if name in files:
                twice[name] |= {files[name], package}
            files.setdefault(name, package)
    _check_folders(files)
    links = tuple(name for content in contents for name in _placed(content, content.links, site))
    return Staged(
        records=tuple(content.record for content in contents),
        files=files,
        claims=claims,
        links=links,
        archives=archives or {},
        damaged=damaged,
        notes=(*_script_notes(contents), *_twice_notes(twice)),
    )


def places(contents: Sequence[Content]) -> Iterator[tuple[Content, tuple[str, ...]]]:
    """Yield the packages of an environment with the path of each of their files, relative to the prefix."""
    site = _site_packages(contents)
    for content in contents:
        yield content, tuple(_placed(content, content.files, site))


def _site_packages(contents: Sequence[Content]) -> str:
    """Return the site-packages folder of the Python among the packages, relative to the prefix."""
    for content in contents:
        record = content.record
        if record.name == "python":
            if record.subdir.startswith("win"):
                return "Lib/site-packages"
            given = getattr(record.raw, "python_site_packages_path", None)
            return given or f"lib/python{'.'.join(record.version.split('.')[:2])}/site-packages"
    return "site-packages"


def _in_prefix(content: Content, site: str) -> Iterator[str]:
    """Yield the paths of a package's files in a prefix."""
    yield from _placed(content, content.files, site) if content.noarch_python else content.files
    for name in content.entry_points:
        yield f"bin/{name}"


def _placed(content: Content, names: Sequence[str], site: str) -> Iterator[str]:
    for name in names:
        if content.noarch_python and name.startswith("site-packages/"):
            yield f"{site}/{name.removeprefix('site-packages/')}"
        elif content.noarch_python and name.startswith("python-scripts/"):
            yield f"bin/{name.removeprefix('python-scripts/')}"
        else:
            yield name


_SUSPICIOUS = ("..", "\\", ":", "\0", "//", "\n/", "/./", "\n./", "tenv", "conda-meta")
"""The signs of a refused name: each is in it, or at its start where every name has a line of its own."""


def _check_names(names: Sequence[str], record: Record) -> None:
    together = "\n".join(("", *names))  # nearly every one of tens of thousands of names is plain
    if any(word in together for word in _SUSPICIOUS):
        for name in names:
            _check_name(name, record)


def _check_name(name: str, record: Record) -> None:
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name) or ".." in parts or "\0" in name:
        what = "is outside the environment"
    elif _RESERVED.match(posixpath.normpath(name)):
        what = "is reserved for tenv and conda"
    else:
        return
    raise UnsafePackageError(
        f"{record.url}: has the file `{name}`, which {what}",
        hint=f"remove {record.name} from the manifest, or use another channel",
    )


def _check_folders(files: Mapping[str, str]) -> None:
    """Raise UnsafePackageError for a file or link at a path that another package needs as a folder."""
    above = {name.rpartition("/")[0] for name in files}
    for parent in [*above]:
        while parent := parent.rpartition("/")[0]:
            above.add(parent)
    if files.keys().isdisjoint(above):
        return
    folders: dict[str, str] = {}
    for name in files:
        parent = name.rpartition("/")[0]
        while parent and parent not in folders:
            folders[parent] = name
            parent = parent.rpartition("/")[0]
    for folder, below in folders.items():
        if folder in files:
            raise UnsafePackageError(
                f"{files[folder]} has a file or link `{folder}`, and {files[below]} has `{below}` below it",
                hint=f"remove {files[folder]} or {files[below]} from the manifest, or use another channel",
            )


def _script_notes(contents: Sequence[Content]) -> Iterator[str]:
    for content in contents:
        scripts = sorted(name for name in content.files if _LINK_SCRIPT.fullmatch(name))
        if scripts:
            record = content.record
            yield (
                f"{record.name} {record.version} has a link script (`{scripts[0]}`), which tenv does not run, "
                "so its output is missing"
            )


def _twice_notes(twice: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield a note for each set of packages that share files."""
    sets: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, packages in sorted(twice.items()):
        sets[tuple(sorted(packages))].append(name)
    for together, names in sets.items():
        shown = some_of([f"`{name}`" for name in names], _NAMED)
        yield f"{' and '.join(together)} have the same files ({shown}); the environment gets one of each"


def leaving_links(prefix: Path, staged: Staged) -> list[str]:
    """Return a note for each package with symbolic links to paths outside the prefix."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in staged.links:
        link = prefix / name
        if link.is_symlink():
            target = link.readlink()
            inside = posixpath.normpath(posixpath.join(posixpath.dirname(name), str(target)))
            if target.is_absolute() or inside.startswith(".."):
                found[staged.files[name]].append(f"`{name}` to `{target}`")
    return [
        f"{package} has symbolic links to paths outside the environment: {some_of(links, _NAMED)}"
        for package, links in found.items()
    ]


def sharing(before: Mapping[str, Collection[str]], after: Mapping[str, Collection[str]]) -> frozenset[str]:
    """Return the packages that claim a path which another package claims, before or after an update.

    A file in the place of another package's folder counts as shared too.

    rattler gives a shared path to one package and puts the file of every other one below ``__clobbers__``. py-rattler
    0.28 decides on that from the packages that one transaction links, so that an update can end with another file than
    a fresh installation, or with none. Packages that share a path are therefore removed first and linked together.

    Args:
        before: The paths that each installed package claims, by its name.
        after: The same for the packages of the lock.
    """
    claims: defaultdict[str, set[str]] = defaultdict(set)
    for packages in (before, after):
        for name, paths in packages.items():
            for path in paths:
                claims[path].add(name)
    found = {name for names in claims.values() if len(names) > 1 for name in names}
    for folder, below in _folders(claims):
        if folder in claims:
            found |= claims[folder] | claims[below]
    return frozenset(found)


def _folders(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each folder above some paths once, with a path below it."""
    known: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in known:
            known.add(folder)
            yield folder, path
            folder = folder.rpartition("/")[0]
