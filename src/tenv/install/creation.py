"""The job of one `tenv create`: the environment, host, lock and findings, each read once."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.errors import TenvError
from tenv.core.files import digest_bytes
from tenv.environment.state import Environment, State, Status, digests_of
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
    """The job of one `tenv create`.

    Attributes:
        context: What every verb is given.
        frozen: The lock is taken as it is, whatever the rules say of its packages.
        features_wanted: The features that it shall hold; None for those that it holds.
        kept: The lock is one that the environment was made from before; the manifest may ask for something else now.
        written: A lock that can't be used as it is may be made anew.
        check: Stop if a rule reports an error about building.
        tell: Hears what the rules have to say.
        judged: The lock that is there, held against the manifest; from the step on that checks.
        findings: What the rules had to say.
        state: The state of the environment when it is ready; None until then.
        aside: Where the folder is that was put aside for this one; None mostly.
        begun: Whether the prefix was begun before the rules had an answer, and no step has changed it since.
        unfinished: A sentence for each activation script that did not end, and for what CMake did not find.
    """

    context: Context
    state: State | None = None
    judged: "JudgedLock"
    findings: "tuple[Finding, ...]" = ()
    unfinished: "Sequence[str]" = ()
    aside: Path | None = None
    begun: bool = False

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
        """Store the request; nothing is read yet."""
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
        """The host and PyTorch to judge by; default: this host and the checkout in the working folder."""
        from tenv.checks import before_create  # late: 30 ms, which an up-to-date environment must not cost

        return before_create.look_around(self.context)

    @cached_property
    def unfit_pythons(self) -> tuple[str, ...]:
        """The Python minors of the target not to choose, since the revision of PyTorch can't be built with them."""
        from tenv.checks import before_create  # late: as above

        return before_create.unfit_pythons(self.target, self.around) if self.check else ()

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

    def ask_rules(self, lock: Lock | None) -> None:
        """Apply the rules to the target, and report new findings.

        Args:
            lock: The lock to install; None if the step `locking` will make it.

        Raises:
            UnfitHostError: The target can't be built on the host.
        """
        from tenv.checks import before_create  # late: as above
        from tenv.checks.rules.pytorch import PYTHON

        known = self.findings
        there = digests_of(self.old)
        restoring = self.repair or self.kept
        found = (
            before_create.require_build(self.target, self.around, lock, there, restoring=restoring)
            if self.check
            else ()
        )
        self.findings = tuple(finding for finding in found if not (finding.code == PYTHON and self._avoids_unfit()))
        self.tell([finding for finding in self.findings if finding not in known])

    def _avoids_unfit(self) -> bool:
        """Return whether the Python is still to be chosen, from those that the revision can be built with."""
        kept = self.old.python if self.old else ""
        named = self.python_wanted or any(work.python() for work in self.works)
        return bool(self.unfit_pythons) and not named and kept not in self.unfit_pythons

    def look(self) -> State | None:
        """Look at what is in the prefix, and note its fault and its state, which is not read where it is not ours."""
        self.fault = self.context.fault_of(self.environment, self.target.name)
        state = self.environment.state() if self.fault is None or self.fault.is_ours else None
        if state is None and self.fault and self.fault.is_ours:
            state = State(Status.BROKEN, self.target.name)
        self.old = state
        return state

    def forget_prefix(self) -> None:
        """Forget the content of the prefix, since another process has changed it."""
        self.__dict__.pop("before", None)


def _read_lock(target: Target) -> bytes | TenvError:
    from tenv.locks.lock_file import read_lock_bytes  # late: as above

    try:
        return read_lock_bytes(target.lock_file, target.name)
    except TenvError as error:
        return error
