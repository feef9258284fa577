"""The interface of all sources, and the tuple of all sources.

A source selects files for a manifest, judges whether a lock satisfies it, fetches and installs the files of a lock, and
reports which files in a prefix are its own. A new source is a folder with a ``source.py`` that defines `SOURCE`, and a
row in `tenv.targets.sections`. Manifests, locks, states, counts and all verbs then include it.
"""

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tenv.core.dataclass import dataclass
from tenv.core.names import normalize
from tenv.environment.installed_files import Expected, Records
from tenv.environment.state import Environment, Owned, State
from tenv.locks.lock import Lock, LockedFile
from tenv.sources.access import Access
from tenv.targets.manifest import Manifest, with_features
from tenv.targets.sections import SECTIONS, SourceSection
from tenv.toolchain.discover import Toolchain

if TYPE_CHECKING:
    from tenv.activation.changes import Watch
    from tenv.sources.archives.store import Damage, Store
    from tenv.sources.job import Job
    from tenv.sources.system.fingerprint import Drift


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """The options of a selection of files."""

    seconds: float = 300.0
    """The time limit for reading package lists, and for solving."""
    exclude_newer: dt.datetime | None = None
    """Ignore files that are newer than this time, in UTC."""
    afresh: bool = False
    """Solve for conda packages even if the kept ones satisfy the manifest, since they may be a mixture."""
    trust_first_use: bool = False
    """Record the digest of a download that has no published one."""
    ask_backends: bool = True
    """Run the build backends of source trees whose metadata only they know."""
    explain: bool = True
    """Search for the cause where there is no solution, which takes many more solutions."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The problem that sources solve."""

    access: Access
    """The settings and services of the user."""
    manifest: Manifest
    """The manifest to satisfy."""
    old: Lock | None
    """The lock whose files are kept if they still satisfy the manifest: the target's, or that of its parent; None to
    keep nothing."""
    upgrade: Sequence[str] | None
    """Normalized names of packages to select anew; None for all."""
    limits: SolveOptions
    """The options of the selection."""

    def wants(self, key: str) -> bool:
        """Return whether the manifest has requests for a source on any platform."""
        return any(self.manifest.on(platform).wanted(key) for platform in self.manifest.platforms)


@dataclass(slots=True)
class Chosen:
    """The files that sources have selected, in their order."""

    files: dict[str, Mapping[str, tuple[Any, ...]]] = field(default_factory=dict)
    """The files, by the key of the source and by platform."""
    records: dict[str, list[Any]] = field(default_factory=dict)
    """The rattler records of conda packages, by platform."""


@dataclass(frozen=True, slots=True)
class SourceCache:
    """A cache folder of a source."""

    name: str
    """The kind of content."""
    path: Path
    """The folder."""
    clear: Callable[[], Sequence[Path] | None]
    """Empties the folder; returns the paths that it leaves there, since tenv did not make them."""
    leftover: bool = False
    """Whether it holds only leftovers of interrupted commands."""


@dataclass(frozen=True, slots=True)
class NeededFile:
    """A file of a lock that an environment does not have yet."""

    name: str
    """The package."""
    version: str
    """Its version."""
    kind: str
    """The kind of package, as in `tenv packages`."""
    size: int | None
    """Its size in bytes, packed; None if unknown."""
    server: str
    """Where it is downloaded from: a channel, a host, or the index of wheels."""
    cached: bool
    """Whether a cache of this user has it, so that it is not downloaded."""


@dataclass(frozen=True, slots=True)
class CarriedFile:
    """A file of a lock that a bundle carries, and a mirror offers."""

    kind: str
    """The key of its source."""
    name: str
    """Its name; empty where the lock has none, for a wheel that only a build needs."""
    sha256: str
    """Its digest in hex."""
    size: int | None
    """Its size in bytes; None if the lock has none."""
    platforms: tuple[str, ...]
    """The platforms that use it, sorted."""
    address: str = ""
    """Its canonical URL, which the head of a bundle leaves out; empty for a wheel of an index."""


class Work:
    """The work of one source for one environment. The methods are called in the order in which they stand here.

    Attributes:
        job: The job of the environment.
        source: The source.
    """

    def __init__(self, job: "Job", source: "Source") -> None:
        """Store the job; nothing is read yet."""
        self.job = job
        self.source = source

    def look(self) -> None:
        """Probe the host; raises HostError if it lacks a system tool."""

    def is_current(self) -> bool:
        """Return whether the environment is up to date for this source, beside the files that its state names."""
        return True

    def accept(self) -> None:
        """Record harmless changes in an environment that is up to date otherwise."""

    def has_harmless_changes(self) -> bool:
        """Return whether `accept` has harmless changes to record."""
        return False

    def needs(self) -> Iterable[NeededFile]:
        """Return the files that are to be installed, by the plan of the job; nothing is fetched."""
        return ()

    def begin(self) -> None:
        """Start fetching missing files in the background; the prefix does not change."""

    def stage(self) -> Collection[str]:
        """Fetch missing files; the prefix does not change.

        Returns:
            Unmanaged files, relative to the prefix, that this source's files replace.
        """
        return ()

    def wait(self) -> None:
        """Wait for the downloads that `begin` started."""

    def prepare(self) -> None:
        """Prepare the prefix before any source installs: remove files that would be in the way."""

    def put(self) -> None:
        """Install, replace and remove files in the prefix, to the state of the lock."""

    def toolkit_parts(self) -> tuple[Path, ...]:
        """Return the folders of the prefix in which this source installed parts of a CUDA toolkit."""
        return ()

    def brings_toolkit(self) -> bool:
        """Return whether the whole CUDA toolkit is outside the prefix."""
        return False

    def fit(self, toolchain: Toolchain) -> Toolchain:
        """Return the toolchain with the tools of this source that are outside the prefix."""
        return toolchain

    def python(self) -> Path | None:
        """Return the Python that the environment is made with, where this source takes one from outside the prefix."""
        return None

    def watches(self) -> "tuple[Watch, ...]":
        """Return the files that a shell compares when it activates the environment."""
        return ()

    def notes(self) -> Iterator[str]:
        """Yield notes for the user about the work."""
        yield from ()

    def close(self) -> None:
        """Stop background work."""


class Source(Protocol):
    """A source of files. A subclass overrides only the methods that differ from the defaults."""

    section: SourceSection
    """Its row in `tenv.targets.sections`."""

    def check(self, manifest: Manifest) -> None:
        """Check the requests before any source selects files.

        Raises:
            ManifestError: This source can't satisfy a request.
        """
        return

    def choose(self, problem: Problem, chosen: Chosen) -> None:
        """Select files that satisfy the manifest on every platform, and add them to `chosen`.

        Raises:
            NoSolutionError: No set of files satisfies the manifest.
            NetworkError: A server does not respond.
        """
        raise NotImplementedError

    def differences(self, lock: Lock, manifest: Manifest, platform: str) -> list[str]:
        """Return why a lock does not satisfy a manifest on a platform, one sentence each."""
        raise NotImplementedError

    def files(self, lock: Lock, platform: str, minor: str) -> Sequence[LockedFile]:
        """Return the files of an environment with a Python minor; `minor` is empty without Python."""
        return lock.files(self.section.key, platform)

    def note(self, file: LockedFile) -> tuple[str, ...]:
        """Return the entry of a file in the state: its version first, its digest last."""
        return file.version, file.sha256

    def records(self, prefix: Path) -> Records:
        """Return the records of a prefix, for a source that installs files."""
        raise NotImplementedError

    def work(self, job: "Job") -> Work:
        """Return the work of this source for an environment."""
        raise NotImplementedError

    def drifts(self, environment: Environment, *, deep: bool) -> "Sequence[Drift]":
        """Return the changed files outside the prefix that an environment uses."""
        return ()

    def contents(self, access: Access, lock: Lock, environment: Environment, state: State) -> Iterable[Expected]:
        """Yield the content of the locked files, as an environment of this host has it; fetches them again."""
        return ()

    def damages(self) -> "Iterable[Damage]":
        """Yield the damaged files in this source's store; reads every byte."""
        return ()

    def caches(self, access: Access) -> Iterator[SourceCache]:
        """Yield the cache folders of this source."""
        yield from ()

    def carried(self, lock: Lock, platform: str, minor: str) -> Iterator[CarriedFile]:
        """Yield the files of a platform that a bundle carries, and a mirror offers.

        Args:
            lock: The lock.
            platform: The platform.
            minor: The only Python minor that counts; empty for all.

        Raises:
            UsageError: The lock has a row that is no file.
        """
        yield from ()

    def collect(
        self, access: Access, store: "Store", lock: Lock, manifest: Manifest, platforms: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Fetch the files that `carried` yields into a store.

        Args:
            access: The settings and services of the user.
            store: The store; a file that it has is not fetched.
            lock: The lock.
            manifest: The manifest of the lock.
            platforms: The Python minor that counts on each platform; empty for all.

        Returns:
            The name of each file that the lock has no name of, by sha256.

        Raises:
            NetworkError: A file can't be fetched.
        """
        return {}

    def shown(self, file: LockedFile | None, prefix: Path) -> dict[str, Any]:
        """Return the values that `tenv show` prints for a request.

        Args:
            file: The locked file; None if the lock has none for the request.
            prefix: The folder of the environment.

        Returns:
            ``locked`` (the version), ``size``, and values of the source.
        """
        return {"locked": file.version, "size": file.size} if file else {"locked": "", "size": None}

    def asked(self, request: Any) -> str:
        """Return the accepted versions of a request, as text."""
        return str(request.version)


def section_of(key: str) -> SourceSection:
    """Return the row of a source in the table of sections."""
    return next(section for section in SECTIONS if section.key == key)


@cache
def _source(key: str) -> Source:
    source: Source = import_module(f"tenv.sources.{key}.source").SOURCE
    return source


def sources() -> tuple[Source, ...]:
    """Return every source, in the order of solving and installing."""
    return tuple(_source(section.key) for section in SECTIONS)


def owned_by_lock(lock: Lock, platform: str, minor: str) -> dict[str, Owned]:
    """Return the entries of a lock's files in the state of an environment, by the key of the source."""
    return {
        source.section.key: {file.name: source.note(file) for file in source.files(lock, platform, minor)}
        for source in sources()
        if source.section.noun
    }


def package_names(lock: Lock | None, manifest: Manifest) -> set[str]:
    """Return the normalized names of all packages in a lock or requested by a manifest."""
    keys = [section.key for section in SECTIONS if section.noun]
    locked = [file.name for key in keys for on in lock.platforms for file in lock.files(key, on)] if lock else []
    wanted = [name for on in manifest.platforms for key in keys for name in manifest.on(on).wanted(key)]
    return {*map(normalize, (*locked, *wanted))}


def differences(lock: Lock, manifest: Manifest) -> list[str]:
    """Return why a lock does not satisfy a manifest, one sentence each; empty if it does.

    The locked files are compared with the present requests: a looser range that the locked version satisfies does not
    make a lock stale.

    Args:
        lock: The lock.
        manifest: The manifest; the requests of its features count, too, and the files that each brings, but for
            inherited features that were left out.
    """
    from tenv.locks.lock_features import division_faults, features_of  # late: only for a lock whose manifest changed
    from tenv.locks.satisfaction import host_differences

    left_out = manifest.inherited - {*features_of(lock)}
    kept = {name: feature for name, feature in manifest.features.items() if name not in left_out}
    whole = replace(manifest, features=kept)
    manifest = with_features(whole)
    found = host_differences(lock, manifest)
    gone = [platform for platform in lock.platforms if platform not in manifest.platforms]
    found += [f"platform {platform} is in the lock and not in the manifest" for platform in gone]
    for platform in manifest.platforms:
        if platform not in lock.platforms:
            found.append(f"platform {platform} is not in the lock")
            continue
        for source in sources():
            found += source.differences(lock, manifest.on(platform), platform)
    return found or (division_faults(lock, whole) if whole.features else [])
