"""The request for `tenv create`, and its job: the environment, host, lock and findings, each read once."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tenv import __version__
from tenv.activation.changes import ACTIVATION
from tenv.activation.shells.interface import STORED
from tenv.core.dataclass import dataclass
from tenv.core.errors import TenvError
from tenv.core.files import digest_bytes
from tenv.core.other_users import closed_part
from tenv.environment.state import Environment, State, Status, digests_of
from tenv.host.interface import Fact, Missing
from tenv.host.machine import BuildResources, probe
from tenv.locks.lock import Lock
from tenv.project.context import Context
from tenv.sources.job import Job
from tenv.sources.owners import holds
from tenv.targets.manifest import with_features
from tenv.targets.search import Target

if TYPE_CHECKING:
    from tenv.checks.before_create import Surroundings
    from tenv.checks.lock_verdict import JudgedLock
    from tenv.checks.rules.interface import Finding
    from tenv.host.installed_torch import InstalledTorch


class LockMode(StrEnum):
    """How `create` treats the lock."""

    UPDATE = "update"
    LOCKED = "locked"
    FROZEN = "frozen"
    KEPT = "kept"
    """Like `FROZEN`, for a lock kept in the environment, which need not satisfy the present manifest."""


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """The request for `create`."""

    target: str
    """The target's name."""
    prefix: Path | None = None
    """The prefix; None for the target's default one."""
    mode: LockMode = LockMode.UPDATE
    """How to treat the lock."""
    lock_file: Path | None = None
    """A lock to use in place of the target's own; None for its own."""
    python: str | None = None
    """A Python minor or program; None to select one."""
    exact: bool = False
    """Remove unmanaged files."""
    wait: bool = True
    """Wait for another process that uses the same environment."""
    check: bool = True
    """Stop if a rule reports an error about building."""
    around: "Surroundings | None" = None
    """The host and PyTorch to judge by; None for this host and the checkout in the working folder, if any."""
    repair: bool = False
    """Verify every file, and reinstall packages with changed or missing files."""
    anew: bool = False
    """Put the existing environment aside, and make a new one."""
    features: tuple[str, ...] | None = None
    """The features of the target to install; None for those that the environment has."""
    for_others: bool = False
    """Make it usable by other users: its rights, and a Python that they can run."""

    @property
    def frozen(self) -> bool:
        """Whether the lock is taken as it is, whatever the rules find in its packages."""
        return self.mode in (LockMode.FROZEN, LockMode.KEPT)

    @property
    def kept(self) -> bool:
        """Whether the lock is one that the environment was made from before; the manifest may be newer."""
        return self.mode is LockMode.KEPT

    @property
    def may_lock(self) -> bool:
        """Whether an unusable lock may be replaced."""
        return self.mode is LockMode.UPDATE and self.lock_file is None


class Creation(Job):
    """The job of one `tenv create`.

    Attributes:
        context: The context of the verb.
        request: The request.
        report: Receives the findings of the rules.
        judged: The existing lock and its differences from the manifest; set by the step `checking`.
        findings: The findings of the rules; set by `checking` and `locking`.
        aside: The folder to which `--anew` renamed the existing environment, or None.
        unfinished: A sentence for each activation script that failed, and for the parts that CMake did not find; set by
            `activating` and `probing`.
        state: The state of the ready environment, or None; set by `finishing`.
        builder: Compiles packages against the target's torch, before the prefix changes.
    """

    context: Context
    judged: "JudgedLock"
    findings: "tuple[Finding, ...]" = ()
    aside: Path | None = None
    unfinished: Sequence[str] = ()
    state: State | None = None
    builder: "Callable[[Creation], None] | None" = None

    def __init__(
        self,
        context: Context,
        request: CreateRequest,
        target: Target,
        environment: Environment,
        platform: str,
        report: "Callable[[Sequence[Finding]], None]",
    ) -> None:
        """Store the request; nothing is read yet."""
        super().__init__(
            context,
            target,
            environment,
            platform,
            python=request.python,
            exact=request.exact,
            repair=request.repair,
        )
        self.request = request
        self.for_others = request.for_others
        self.report = report
        if request.around is not None:
            self.around = request.around

    @property
    def features(self) -> tuple[str, ...]:
        """The features to install, sorted; one that the manifest no longer has is dropped."""
        held = self.old.features if self.old else ()
        wanted = held if self.request.features is None else self.request.features
        known = wanted if self.request.kept else self.target.manifest.features
        return tuple(sorted(name for name in set(wanted) if name in known))

    @cached_property
    def around(self) -> "Surroundings":
        """The host and PyTorch to judge by; default: this host and the checkout in the working folder."""
        from tenv.checks import before_create  # late: 30 ms, which an up-to-date environment must not cost

        return before_create.look_around(self.context)

    @cached_property
    def unfit_pythons(self) -> tuple[str, ...]:
        """The Python minors of the target not to choose, since the revision of PyTorch can't be built with them."""
        from tenv.checks import before_create  # late: as above

        return before_create.unfit_pythons(self.target, self.around) if self.request.check else ()

    @cached_property
    def machine(self) -> BuildResources:
        """The resources for a build on this machine, from the host report if that describes this machine."""
        around = self.__dict__.get("around")
        if around is not None and around.here:
            cores, memory = around.host.cores, around.host.memory
            if isinstance(cores, Fact):
                return BuildResources(cores, memory)
        return probe()

    @cached_property
    def beside(self) -> "InstalledTorch | None":
        """The torch of the environment that the toolkit is for; None for a target with its own Python.

        Raises:
            TorchError: There is none that a toolkit can be made for.
        """
        if not self.manifest.beside:
            return None
        from tenv.host.installed_torch import read_torch  # late: few targets are beside another environment
        from tenv.targets.torch_beside import require_beside

        found = read_torch(require_beside(Path(self.manifest.beside)).package)
        return None if isinstance(found, Missing) else found

    @cached_property
    def lock_read(self) -> bytes | TenvError:
        """The bytes of the lock's file, or the error of reading it."""
        return _read_lock(self.target)

    @cached_property
    def lock_digest(self) -> str:
        """The sha256 of the lock's bytes; empty if it can't be read."""
        return digest_bytes(self.lock_read) if isinstance(self.lock_read, bytes) else ""

    def has_other_lock(self) -> bool:
        """Return whether the lock's file has changed since it was read."""
        now = _read_lock(self.target)
        return isinstance(now, TenvError) or now != self.lock_read

    def take_lock(self, lock: Lock, target: Target) -> None:
        """Set the lock that the step `locking` wrote, and its target."""
        self.lock, self.target = lock, target
        self.lock_read, self.lock_digest = lock.text, lock.digest()

    def ask_rules(self, lock: Lock | None, *, compiles: bool | None = None) -> None:
        """Apply the rules to the target, and report new findings.

        Args:
            lock: The lock to install; None if the step `locking` will make it.
            compiles: Whether something is compiled here; by default, unless the lock names the wheels of a wheelhouse
                for all such packages, or has the CUDA runtime for its torch alone.

        Raises:
            UnfitHostError: The target can't be built on the host.
        """
        from tenv.checks import before_create  # late: as above
        from tenv.checks.rules.pytorch import PYTHON
        from tenv.checks.rules.toolkit import WAITS

        known = self.findings
        there = digests_of(self.old)
        options = {
            "restoring": self.repair or self.request.kept,
            "compiles": self._compiles(lock) if compiles is None else compiles,
        }
        found = (
            before_create.require_build(self.target, self.around, lock, there, **options) if self.request.check else ()
        )
        self.findings = tuple(finding for finding in found if not (finding.code == PYTHON and self._avoids_unfit()))
        passing = WAITS if lock is None and not self.manifest.beside else ""  # the next step locks the torch
        self.report([finding for finding in self.findings if finding not in known and finding.code != passing])

    def _compiles(self, lock: Lock | None) -> bool:
        """Return whether something may be compiled in the environment.

        Nothing is where a lock names a wheel of a wheelhouse for each package that is compiled against its torch, or
        has the CUDA runtime for its torch alone.
        """
        from tenv.checks.rules.toolkit import compiles_no_cuda  # late: as above

        if lock is None:
            return True
        if rows := [row for row in lock.trees.get(self.platform, ()) if not row.isolated]:
            return not (self.target.manifest.wheelhouse and all(row.wheels for row in rows))
        return not compiles_no_cuda(lock, self.manifest, self.platform)

    def _avoids_unfit(self) -> bool:
        """Return whether the Python is still to be chosen, from those that the revision can be built with."""
        kept = self.old.python if self.old else ""
        named = self.python_wanted or any(work.python() for work in self.works)
        return bool(self.unfit_pythons) and not named and kept not in self.unfit_pythons

    def look(self) -> State | None:
        """Read the fault and the state of the existing environment; the state of a foreign one is not read."""
        self.fault = self.context.fault_of(self.environment, self.target.name)
        state = self.environment.state() if self.fault is None or self.fault.is_ours else None
        if state is None and self.fault and self.fault.is_ours:
            state = State(Status.BROKEN, self.target.name)
        self.old = state
        return state

    def is_current(self) -> bool:
        """Return whether the environment satisfies the request, so that `create` has nothing to do; reads its state."""
        state = self.look()
        if state is None or state.status is not Status.READY or self.fault or self.exact or self.repair:
            return False
        if not all(work.is_current() for work in self.works) or not self._is_made_from(state):
            return False
        if self.for_others and state.python and closed_part(self.before.python, self.prefix):
            return False
        whole = self.has_python(state.python) and self._is_there(state) and self._has_right_compat()
        return whole and self._has_same_folders(state)

    def _has_same_folders(self, state: State) -> bool:
        """Return whether no folder has been edited since a package was compiled of it against the torch."""
        for row in state.compiled:
            name, _, *compiled = row.split(" ")
            if compiled:
                from tenv.sources.wheels.folder_copy import digest_of_folder  # late: few environments have one

                here = with_features(self.target.manifest, self.features).on(self.platform)
                request = here.wheels.get(name)
                if request and request.tree and digest_of_folder(request.tree.folder) != compiled[0]:
                    return False
        return True

    def _is_made_from(self, state: State) -> bool:
        """Return whether this tenv made the environment on this platform from the present lock and manifest."""
        if state.written_by != __version__:  # another version may lay out toolkit and activation differently
            return False
        return (
            state.platform == self.platform
            and state.lock == self.lock_digest != ""
            and state.features == self.features
            and (self.request.kept or state.manifest == self.target.manifest.settings_digest())
        )

    def _is_there(self, state: State) -> bool:
        """Return whether the files that the state names, the activation and its scripts exist; reads no content."""
        notes = (ACTIVATION, *(shell.SCRIPT for shell in STORED))
        return (
            holds(self.environment, state.owned)
            and (not state.python or self.before.python.exists())
            and all((self.environment.meta / name).is_file() for name in notes)
        )

    def _has_right_compat(self) -> bool:
        """Return whether the use of cuda-compat fits the driver; true for an environment without cuda-compat."""
        folder = self.before.compat
        if folder is None:
            return True
        from tenv.checks.before_create import allows_compat, uses_compat_as_allowed  # late: few environments hold it

        allowed = allows_compat(self.target, self.platform, self.around)
        return uses_compat_as_allowed(folder, self.environment, allowed=allowed)

    def forget_prefix(self) -> None:
        """Forget the content of the prefix, since another process has changed it."""
        self.__dict__.pop("before", None)


def _read_lock(target: Target) -> bytes | TenvError:
    from tenv.locks.lock_file import read_lock_bytes  # late: as above

    try:
        return read_lock_bytes(target.lock_file, target.name)
    except TenvError as error:
        return error
