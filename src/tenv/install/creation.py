"""A `tenv create` that is under way: the environment, and what it is judged by, each looked at once."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.errors import TenvError
from tenv.core.files import digest_bytes
from tenv.environment.state import Environment, State, Status
from tenv.host.interface import Fact
from tenv.host.machine import BuildResources, probe
from tenv.locks.lock import Lock
from tenv.project.context import Context
from tenv.sources.job import Job
from tenv.targets.search import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenv.checks.before_create import Surroundings
    from tenv.checks.lock_verdict import JudgedLock
    from tenv.checks.rules.interface import Finding

__all__ = ["Creation"]


class Creation(Job):
    """An environment that `tenv create` makes.

    Attributes:
        context: What every verb is given.
        frozen: The lock is taken as it is, whatever the rules say of its packages.
        features_wanted: The features that it shall hold; None for those that it holds.
        kept: The lock is one that the environment was made from before; the manifest may ask for something else now.
        written: A lock that can't be used as it is may be made anew.
        check: Stop where the rules say that the target can't be built here.
        tell: Hears what the rules have to say.
        judged: The lock that is there, held against the manifest; from the step on that checks.
        findings: What the rules had to say.
        state: The state of the environment when it is ready; None until then.
        aside: Where the folder is that was put aside for this one; None mostly.
        unfinished: A sentence for each activation script that did not end, and for what CMake did not find.
    """

    context: Context
    state: State | None = None
    judged: "JudgedLock"
    findings: "tuple[Finding, ...]" = ()
    unfinished: "Sequence[str]" = ()
    aside: Path | None = None

    def __init__(
        self,
        context: Context,
        target: Target,
        environment: Environment,
        platform: str,
        *,
        python: str | None,
        exact: bool,
        repair: bool,
        frozen: bool,
        kept: bool,
        written: bool,
        check: bool,
        around: "Surroundings | None",
        tell: "Callable[[Sequence[Finding]], None]",
        features: tuple[str, ...] | None = None,
    ) -> None:
        """Take what is asked; nothing is looked at yet."""
        super().__init__(context, target, environment, platform, python=python, exact=exact, repair=repair)
        self.frozen = frozen
        self.kept = kept
        self.written = written
        self.check = check
        self.tell = tell
        self.features_wanted = features
        if around is not None:
            self.around = around

    @property
    def features(self) -> tuple[str, ...]:
        """The features that the environment shall hold, sorted; one that the manifest no longer has is dropped."""
        held = self.old.features if self.old else ()
        wanted = held if self.features_wanted is None else self.features_wanted
        known = wanted if self.kept else self.target.manifest.features
        return tuple(sorted(name for name in set(wanted) if name in known))

    @cached_property
    def around(self) -> "Surroundings":
        """What the target is judged by: this machine and the checkout here, where nothing else was named."""
        from tenv.checks import before_create  # late: 30 ms that a create with nothing to do can't spare

        return before_create.look_around(self.context)

    @cached_property
    def machine(self) -> BuildResources:
        """What a build on this machine may use; from the host report, where there is one of this machine."""
        around = self.__dict__.get("around")
        if around is not None and around.here:
            cores, memory = around.host.cores, around.host.memory
            if isinstance(cores, Fact):
                return BuildResources(cores, memory)
        return probe()

    @cached_property
    def lock_read(self) -> bytes | TenvError:
        """The bytes of the lock's file, or why there are none."""
        from tenv.locks.lock_file import read_lock_bytes  # late: as above

        try:
            return read_lock_bytes(self.target.lock_file, self.target.name)
        except TenvError as error:
            return error

    @cached_property
    def lock_digest(self) -> str:
        """The sha256 of those bytes, an empty string where there are none."""
        return digest_bytes(self.lock_read) if isinstance(self.lock_read, bytes) else ""

    def take_lock(self, lock: Lock, target: Target) -> None:
        """Take a lock that was written just now, and the target that has it."""
        self.lock, self.target = lock, target
        self.lock_read, self.lock_digest = lock.text, lock.digest()

    def ask_rules(self, lock: Lock | None) -> None:
        """Ask the rules about the target, and tell of what they have not said before.

        Args:
            lock: The lock that will be installed; None where it is about to be made.

        Raises:
            UnfitHostError: It can't be built here.
        """
        from tenv.checks import before_create  # late: as above

        known = self.findings
        self.findings = before_create.require_build(self.target, self.around, lock) if self.check else ()
        self.tell([finding for finding in self.findings if finding not in known])

    def look(self) -> State | None:
        """Look at what is in the prefix, and note its fault and its state, which is not read where it is not ours."""
        self.fault = self.context.fault_of(self.environment, self.target.name)
        state = self.environment.state() if self.fault is None or self.fault.is_ours else None
        if state is None and self.fault and self.fault.is_ours:
            state = State(Status.BROKEN, self.target.name)
        self.old = state
        return state

    def forget_prefix(self) -> None:
        """Forget what is in the prefix: another process has been at it."""
        self.__dict__.pop("before", None)
