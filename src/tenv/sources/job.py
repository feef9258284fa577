"""The job of making one environment, as sources see it."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass
from tenv.core.files import flush
from tenv.core.threads import ahead
from tenv.environment.state import Environment, Owned, State, Status
from tenv.sources.interface import Access, Work, sources
from tenv.targets.manifest import Manifest
from tenv.toolchain.discover import Toolchain, discover

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenv.core.folder_size import MeasuredFolder
    from tenv.environment.trust import Fault
    from tenv.locks.lock import Lock
    from tenv.sources.wheels.interpreters import Interpreter
    from tenv.sources.wheels.uv import Uv
    from tenv.targets.search import Target

__all__ = ["Job", "Plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan for the files of a prefix.

    Attributes:
        had: The packages that tenv installed, by the key of their source.
        wanted: The packages of the lock, by the key of their source.
        scratch: Clear the prefix first, since its content may be incomplete.
        changed: The keys of the sources that install, replace or remove files.
        unmanaged: The unmanaged files, relative to the prefix, that stay.
        dropped: Whether unmanaged packages are removed, since they were for another Python.
        damaged: Names of packages to reinstall without trusting any cache.
        python: The Python of the environment; None if it needs none.
        own_python: Whether that Python is a conda package, not the base of a virtual environment.
    """

    had: Mapping[str, Owned]
    wanted: Mapping[str, Owned]
    scratch: bool
    changed: frozenset[str]
    unmanaged: tuple[str, ...]
    dropped: bool
    damaged: frozenset[str] = frozenset()
    python: "Interpreter | None" = None
    own_python: bool = False

    @property
    def minor(self) -> str:
        """The Python minor; empty without a Python."""
        return self.python.version.major_minor if self.python else ""

    def anew(self) -> "Plan":
        """Return the plan that clears the prefix first, and puts the files of every source there again."""
        keys = (key for rows in (self.had, self.wanted) for key, packages in rows.items() if packages)
        return replace(self, scratch=True, changed=frozenset(keys))

    def ours(self, key: str) -> Owned:
        """Return the packages of a source that tenv owns, before or after."""
        return {**self.had.get(key, {}), **self.wanted[key]}

    def broken(self, key: str) -> tuple[str, ...]:
        """Return the packages of a source that are damaged, sorted."""
        return tuple(sorted(self.damaged & self.wanted[key].keys()))

    def other_files(self, key: str) -> tuple[str, ...]:
        """Return the packages of a source that have the locked version, but were installed from another file."""
        had, wanted = self.had.get(key, {}), self.wanted[key]
        return tuple(
            name for name, row in wanted.items() if name in had and had[name] != row and had[name][:-1] == row[:-1]
        )


class Job:
    """The job of making one environment. Each fact is read once.

    Attributes:
        context: What sources are given.
        target: The target.
        environment: Where to.
        platform: The platform of this host.
        manifest: The manifest as it reads on that platform.
        python_wanted: A Python minor or program; None to choose.
        exact: Remove unmanaged files.
        repair: Verify every file, and reinstall packages with changed or missing files.
        lock: What the environment shall hold; from the step on that decides on it.
        plan: How that is reached; from the step on that decides on it.
        old: What is known about what is there; None when nothing is.
        fault: Why what is there can't be used as it is; None when it can.
        toolchain: What is there in the end; from the step on that assembles it.
        measured: The folder of Python packages after the wheels were installed, while only they changed it; None for
            one that was not measured or may have changed since.
        linked: The sizes in bytes of files of conda packages that are links to those of the cache, by path relative to
            the prefix, as far as they are known. No two of them are one file.
        flushing: Waits for the disk to have what an installer wrote, and raises StorageError where it can't; None where
            nothing waits yet.
    """

    lock: "Lock"
    plan: Plan
    toolchain: Toolchain
    measured: "MeasuredFolder | None" = None
    linked: Mapping[str, int] = MappingProxyType({})
    flushing: "Callable[[], None] | None" = None

    def __init__(
        self,
        context: Access,
        target: "Target",
        environment: Environment,
        platform: str,
        *,
        python: str | None = None,
        exact: bool = False,
        repair: bool = False,
    ) -> None:
        """Store the request; nothing is read yet."""
        self.context = context
        self.target = target
        self.environment = environment
        self.platform = platform
        self.python_wanted = python
        self.exact = exact
        self.repair = repair
        self.old: State | None = None
        self.fault: Fault | None = None

    @property
    def manifest(self) -> Manifest:
        """The manifest for this platform."""
        return self.target.manifest.on(self.platform)

    @property
    def features(self) -> tuple[str, ...]:
        """The features of the target that the environment holds."""
        return self.old.features if self.old else ()

    @property
    def prefix(self) -> Path:
        """The folder of the environment."""
        return self.environment.prefix

    @property
    def ready(self) -> State | None:
        """The state of an environment that is ready before the change; None otherwise."""
        return self.old if self.old and self.old.status is Status.READY else None

    @cached_property
    def before(self) -> Toolchain:
        """The toolchain in the prefix before any change."""
        return discover(self.prefix)

    @cached_property
    def uv(self) -> "Uv":
        """The program uv with the index settings of the user."""
        return self.context.uv()

    @cached_property
    def works(self) -> tuple[Work, ...]:
        """The work of each source, in their order."""
        return tuple(source.work(self) for source in sources())

    @property
    def unfit_pythons(self) -> tuple[str, ...]:
        """The Python minors of the target not to choose, since the revision of PyTorch can't be built with them."""
        return ()

    def flush_ahead(self) -> None:
        """Let the disk write what an installer has put into the prefix, while its files are looked at."""
        earlier, now = self.flushing, ahead(partial(flush, self.prefix))

        def both() -> None:  # one wait alone raises what the disk could not take
            if earlier:
                earlier()
            now()

        self.flushing = both

    def has_python(self, minor: str = "") -> bool:
        """Return whether the environment has the requested Python.

        Args:
            minor: The minor to compare; empty to compare none.
        """
        wanted = self.python_wanted
        if not wanted:
            return True
        if "/" not in wanted:
            return not minor or wanted == minor
        return os.path.realpath(self.before.python) == os.path.realpath(wanted)
