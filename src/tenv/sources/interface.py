"""The port that every source of files stands behind, and the tuple of all sources.

A source chooses what satisfies a manifest, says whether a lock still does, brings what a lock names, puts it into a
prefix, and knows what there is its own. One more is a folder with a ``source.py`` that has a `SOURCE`, and a row in
`tenv.targets.sections`; manifests, locks, states, counts and every verb then know of it.
"""

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tenv.core.names import normalize
from tenv.environment.installed_files import Records
from tenv.environment.state import Owned
from tenv.locks.lock import Lock, LockedFile
from tenv.targets.manifest import Manifest
from tenv.targets.sections import SECTIONS, SourceSection
from tenv.toolchain.discover import Toolchain

if TYPE_CHECKING:
    from tenv.activation.changes import Watch
    from tenv.core.http_settings import HttpSettings
    from tenv.core.progress import Progress
    from tenv.environment.state import Environment
    from tenv.facts.tables import Facts
    from tenv.rattler_api.network import Network
    from tenv.sources.archives.store import Damage
    from tenv.sources.job import Job
    from tenv.sources.system.fingerprint import Drift
    from tenv.sources.wheels.uv import Uv
    from tenv.targets.config import Settings

__all__ = [
    "Access",
    "Chosen",
    "Problem",
    "SolveOptions",
    "Source",
    "SourceCache",
    "Work",
    "owned_by_lock",
    "package_names",
    "section_of",
    "sources",
]


class Access(Protocol):
    """What sources are given to reach what they need; `tenv.project.context.Context` is one."""

    @property
    def progress(self) -> "Progress":
        """Who watches."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment of the calling process."""

    @property
    def offline(self) -> bool:
        """Whether the network is never used."""

    def uv(self) -> "Uv":
        """Return uv with this user's index settings."""

    def settings(self) -> "Settings":
        """Return what the user's own ``config.toml`` says."""

    def network(self) -> "Network":
        """Return how conda channels are reached for this user."""

    def http(self) -> "HttpSettings":
        """Return how tenv's own requests are made for this user."""

    def facts(self) -> "Facts":
        """Return the tables with the rows of this user."""


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """What a choice of files is limited to.

    Attributes:
        seconds: How long reading the package lists of channels, and then solving, may take.
        exclude_newer: Files that came later do not count; in UTC.
        afresh: Conda packages are solved for even where the kept ones answer the manifest, since they may be a mixture.
        trust_first_use: Whether a file whose digest nobody names may be taken as it is seen now.
    """

    seconds: float = 300.0
    exclude_newer: dt.datetime | None = None
    afresh: bool = False
    trust_first_use: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be chosen.

    Attributes:
        access: What sources are given.
        manifest: What the files must satisfy.
        old: The lock whose files are kept where they still fit; None to keep nothing.
        upgrade: Normalized names of packages whose version is chosen anew; None for all.
        limits: What the choice is limited to.
    """

    access: Access
    manifest: Manifest
    old: Lock | None
    upgrade: Sequence[str] | None
    limits: SolveOptions

    def wants(self, key: str) -> bool:
        """Tell whether the manifest asks anything of a source on any platform."""
        return any(self.manifest.on(platform).wanted(key) for platform in self.manifest.platforms)


@dataclass(slots=True)
class Chosen:
    """What sources have chosen so far, each after those before it.

    Attributes:
        files: The files, by the key of the source and by platform.
        records: The descriptions of conda packages by platform, as rattler writes them into a lock.
    """

    files: dict[str, Mapping[str, tuple[Any, ...]]] = field(default_factory=dict)
    records: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceCache:
    """A folder of a source whose content can be had again.

    Attributes:
        name: What it is, in words.
        path: The folder.
        clear: Empties it.
        leftover: Whether it holds only what interrupted commands have left.
    """

    name: str
    path: Path
    clear: Callable[[], None]
    leftover: bool = False


class Work:
    """What one source does in one environment that is being made; each method is called in the order of this list.

    Attributes:
        job: The environment, and what is known about it.
        source: The source.
    """

    def __init__(self, job: "Job", source: "Source") -> None:
        """Take the job; nothing is looked at yet."""
        self.job = job
        self.source = source

    def look(self) -> None:
        """Look at what the machine has to offer; raises HostError where it lacks what the manifest asks for."""

    def is_current(self) -> bool:
        """Tell whether the environment has what is wanted of this source, beside the files that its state names."""
        return True

    def accept(self) -> None:
        """Write down what has changed without a meaning, in an environment with which there is nothing else to do."""

    def has_harmless_changes(self) -> bool:
        """Tell whether `accept` has something to do."""
        return False

    def begin(self) -> None:
        """Begin to bring what is missing, beside the other work; nothing in the prefix is touched."""

    def stage(self) -> Collection[str]:
        """Have what is missing brought; nothing in the prefix is touched.

        Returns:
            Unmanaged files of the prefix, relative to it, which this source's files replace.
        """
        return ()

    def wait(self) -> None:
        """Wait until all that `begin` has begun is there."""

    def prepare(self) -> None:
        """Prepare the prefix before any source puts a file there: take away what would be in the way."""

    def put(self) -> None:
        """Bring what is in the prefix to what the lock says."""

    def toolkit_parts(self) -> tuple[Path, ...]:
        """Return the folders of the prefix with parts of a CUDA toolkit that this source has put there."""
        return ()

    def brings_toolkit(self) -> bool:
        """Tell whether the whole CUDA toolkit comes from outside the prefix."""
        return False

    def fit(self, toolchain: Toolchain) -> Toolchain:
        """Return the toolchain with what this source supplies from outside the prefix."""
        return toolchain

    def python(self) -> Path | None:
        """Return the Python that the environment is made with, where this source takes one from outside the prefix."""
        return None

    def watches(self) -> "tuple[Watch, ...]":
        """Return what shells look at when they activate the environment."""
        return ()

    def notes(self) -> Iterator[str]:
        """Yield what the user may want to know of what was done."""
        yield from ()

    def close(self) -> None:
        """End what has not ended."""


class Source(Protocol):
    """Where files come from; a source that inherits from this says only what is different."""

    section: SourceSection
    """Its row in `tenv.targets.sections`."""

    def check(self, manifest: Manifest) -> None:  # noqa: ARG002
        """Refuse what can't be answered, before anything is chosen.

        Raises:
            ManifestError: A request asks for what this source can't have.
        """
        return

    def choose(self, problem: Problem, chosen: Chosen) -> None:
        """Add what satisfies the manifest on every platform to what the sources before have chosen.

        Raises:
            NoSolutionError: There is nothing that does.
            NetworkError: A server does not answer.
        """
        raise NotImplementedError

    def differences(self, lock: Lock, manifest: Manifest, platform: str) -> list[str]:
        """Return what keeps a lock from satisfying a manifest on a platform, one sentence each."""
        raise NotImplementedError

    def files(self, lock: Lock, platform: str, minor: str) -> Sequence[LockedFile]:  # noqa: ARG002
        """Return the files that an environment takes, with a Python minor; empty for none."""
        return lock.files(self.section.key, platform)

    def note(self, file: LockedFile) -> tuple[str, ...]:
        """Return what the state remembers of a file: its version, and last its digest."""
        return file.version, file.sha256

    def records(self, prefix: Path) -> Records:
        """Return the records of what is in a prefix; asked of sources that bring files."""
        raise NotImplementedError

    def work(self, job: "Job") -> Work:
        """Return what brings its files into an environment."""
        raise NotImplementedError

    def drifts(self, environment: "Environment", *, deep: bool) -> "Sequence[Drift]":  # noqa: ARG002
        """Return what an environment uses from outside its prefix and is no longer what it was."""
        return ()

    def damages(self) -> "Iterable[Damage]":
        """Yield what in this source's own store is not what it was; every byte is read."""
        return ()

    def caches(self, access: Access) -> Iterator[SourceCache]:  # noqa: ARG002
        """Yield the folders in which this source keeps what it has fetched."""
        yield from ()

    def shown(self, file: LockedFile | None, prefix: Path) -> dict[str, Any]:  # noqa: ARG002
        """Return what `tenv show` reports of a file of the lock; None where the lock has none for a request.

        Args:
            file: The file.
            prefix: The folder of the environment.

        Returns:
            ``locked`` (the version), ``size``, and what else there is.
        """
        return {"locked": file.version, "size": file.size} if file else {"locked": "", "size": None}

    def asked(self, request: Any) -> str:
        """Return the versions that a request of the manifest accepts, as text."""
        return str(request.version)


def section_of(key: str) -> SourceSection:
    """Return the row of a source."""
    return next(section for section in SECTIONS if section.key == key)


@cache
def _source(key: str) -> Source:
    source: Source = import_module(f"tenv.sources.{key}.source").SOURCE
    return source


def sources() -> tuple[Source, ...]:
    """Return every source, in the order in which files are chosen and installed."""
    return tuple(_source(section.key) for section in SECTIONS)


def owned_by_lock(lock: Lock, platform: str, minor: str) -> dict[str, Owned]:
    """Return what the state of an environment remembers of the files of a lock, by the key of the source."""
    return {
        source.section.key: {file.name: source.note(file) for file in source.files(lock, platform, minor)}
        for source in sources()
        if source.section.noun
    }


def package_names(lock: Lock | None, manifest: Manifest) -> set[str]:
    """Return the normalized names of all packages that a lock holds or a manifest asks for."""
    keys = [section.key for section in SECTIONS if section.noun]
    locked = [file.name for key in keys for on in lock.platforms for file in lock.files(key, on)] if lock else []
    wanted = [name for on in manifest.platforms for key in keys for name in manifest.on(on).wanted(key)]
    return {*map(normalize, (*locked, *wanted))}
