"""One environment that is being made: what is known about it, and what is decided, for every source."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.environment.state import Environment, Owned, State, Status
from tenv.sources.interface import Access, Work, sources
from tenv.targets.manifest import Manifest
from tenv.toolchain.discover import Toolchain, discover

if TYPE_CHECKING:
    from tenv.environment.trust import Fault
    from tenv.locks.lock import Lock
    from tenv.sources.wheels.interpreters import Interpreter
    from tenv.sources.wheels.uv import Uv
    from tenv.targets.search import Target

__all__ = ["Job", "Plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How the files of a prefix are brought to what the lock says.

    Attributes:
        had: What tenv has put there, by the key of its source.
        wanted: What shall be there.
        scratch: Clear the prefix first, since what is in it is not known to be whole.
        changed: The keys of the sources whose files are put there, replaced or removed.
        unmanaged: Files, relative to the prefix, that are not tenv's and stay.
        dropped: Whether packages that are not tenv's go, since they were for another Python.
        damaged: Names of packages to bring again, trusting nothing of them that is in a cache.
        python: The Python that the environment is made with; None when it needs none.
        own_python: Whether that Python is one of the conda packages, and not the base of a virtual environment.
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
        """The Python minor, empty when there is no Python."""
        return self.python.version.major_minor if self.python else ""

    def ours(self, key: str) -> Owned:
        """Return what is tenv's of a source, before or after."""
        return {**self.had.get(key, {}), **self.wanted[key]}

    def broken(self, key: str) -> tuple[str, ...]:
        """Return the packages of a source that are damaged, sorted."""
        return tuple(sorted(self.damaged & self.wanted[key].keys()))

    def other_files(self, key: str) -> tuple[str, ...]:
        """Return the packages of a source that are there in the right version, but not from the right file."""
        had, wanted = self.had.get(key, {}), self.wanted[key]
        return tuple(
            name for name, row in wanted.items() if name in had and had[name] != row and had[name][:-1] == row[:-1]
        )


class Job:
    """An environment to make; what is looked at for it is looked at once.

    Attributes:
        context: What sources are given.
        target: The target.
        environment: Where to.
        platform: The platform of this host.
        manifest: The manifest as it reads on that platform.
        python_wanted: A Python minor or program; None to choose.
        exact: Remove what tenv did not install.
        repair: Look at every file, and fetch and install again what is not as it was put there.
        lock: What the environment shall hold; from the step on that decides on it.
        plan: How that is reached; from the step on that decides on it.
        old: What is known about what is there; None when nothing is.
        fault: Why what is there can't be used as it is; None when it can.
        toolchain: What is there in the end; from the step on that assembles it.
    """

    lock: "Lock"
    plan: Plan
    toolchain: Toolchain

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
        """Take what is asked; nothing is looked at yet."""
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
        """The manifest as it reads on this platform."""
        return self.target.manifest.on(self.platform)

    @property
    def prefix(self) -> Path:
        """The folder of the environment."""
        return self.environment.prefix

    @property
    def ready(self) -> State | None:
        """The state of an environment that can be used until it is changed; None when there is none."""
        return self.old if self.old and self.old.status is Status.READY else None

    @cached_property
    def before(self) -> Toolchain:
        """What is in the prefix before anything is changed."""
        return discover(self.prefix)

    @cached_property
    def uv(self) -> "Uv":
        """The program uv with this user's index settings."""
        return self.context.uv()

    @cached_property
    def works(self) -> tuple[Work, ...]:
        """The work of each source, in their order."""
        return tuple(source.work(self) for source in sources())

    def has_python(self, minor: str = "") -> bool:
        """Tell whether the environment has the Python that is asked for.

        Args:
            minor: The minor that it has; empty when that is not asked.
        """
        wanted = self.python_wanted
        if not wanted:
            return True
        if "/" not in wanted:
            return not minor or wanted == minor
        return os.path.realpath(self.before.python) == os.path.realpath(wanted)
