"""The job of making one environment, as sources see it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.environment.integrity import Faults
from tenv.environment.state import Environment, Owned, State, Status
from tenv.sources.access import Access
from tenv.sources.interface import Work, sources
from tenv.targets.manifest import Manifest
from tenv.toolchain.discover import Toolchain, discover

if TYPE_CHECKING:
    from tenv.environment.trust import Fault
    from tenv.locks.lock import Lock, LockedTree, Wheel
    from tenv.sources.wheels.interpreters import Interpreter
    from tenv.sources.wheels.uv import Uv
    from tenv.targets.search import Target
    from tenv.targets.tree_request import TreeRequest


def named_python(wanted: str, environ: Mapping[str, str]) -> str:
    """Return the path of a program that is named as on PATH, such as `python3.11d`; other words as they are."""
    if "/" in wanted or wanted[:1].isdigit() or Path(wanted).is_file():
        return wanted
    return process.find(wanted, environ.get("PATH")) or wanted


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan for the files of a prefix."""

    had: Mapping[str, Owned]
    """The packages that tenv installed, by the key of their source."""
    wanted: Mapping[str, Owned]
    """The packages of the lock, by the key of their source."""
    scratch: bool
    """Clear the prefix first, since its content may be incomplete."""
    changed: frozenset[str]
    """The keys of the sources that install, replace or remove files."""
    unmanaged: tuple[str, ...]
    """The unmanaged files, relative to the prefix, that stay."""
    dropped: bool
    """Whether unmanaged packages are removed, since they were for another Python."""
    damaged: frozenset[str] = frozenset()
    """Names of packages to reinstall without trusting any cache."""
    faults: Faults = field(default_factory=Faults)
    """The missing and changed paths to repair."""
    python: "Interpreter | None" = None
    """The Python of the environment; None if it needs none."""
    own_python: bool = False
    """Whether that Python is a conda package, not the base of a virtual environment."""
    compiled: tuple[str, ...] = ()
    """The packages that are compiled against the torch, each with a digest of the manifest's values for it."""

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

    def keeps(self, key: str, name: str) -> bool:
        """Return whether a package stays as it is in the prefix."""
        had = self.had.get(key, {}).get(name)
        return not self.scratch and had is not None and had == self.wanted[key].get(name) and name not in self.damaged

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
        context: The settings and services of the user.
        target: The target.
        environment: The environment to make.
        platform: The platform of this host.
        manifest: The manifest for that platform.
        python_wanted: A Python minor, or the path of a program; None to choose.
        exact: Remove unmanaged files.
        repair: Verify every file, and reinstall packages with changed or missing files.
        lock: The lock to install; set by the step `checking` or `locking`.
        plan: The plan for the files of the prefix; set by `planning`, and changed by `staging`.
        old: The state of the existing environment, or None.
        fault: Why the existing environment is unusable, or None.
        toolchain: The assembled toolchain; set by `assembling`.
        compiled: The rows of the packages to compile against the target's torch; set by `staging`.
        built: The wheels that they became, by name; set by `building`.
        requests: Their requests for source trees, by name.
        fetches: Whether a missing Python is downloaded; false for a job that changes nothing.
        for_others: Whether other users have to be able to use the environment.
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
        """Store the request; nothing is read yet."""
        self.context = context
        self.target = target
        self.environment = environment
        self.platform = platform
        self.python_wanted = named_python(python, context.environ) if python else None
        self.exact = exact
        self.repair = repair
        self.fetches = True
        self.for_others = False
        self.compiled: Sequence[LockedTree] = ()
        self.built: Mapping[str, Wheel] = {}
        self.requests: Mapping[str, TreeRequest] = {}
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
