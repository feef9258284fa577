"""The step *checking*: is there a lock to install, and can the target be built here?"""

from collections.abc import Callable

from tenv.checks.lock_verdict import JudgedLock, judge_lock
from tenv.core.errors import LockStaleError
from tenv.install.creation import Creation
from tenv.locks.lock import Lock

__all__ = ["Begin", "check"]

Begin = Callable[[Lock, Callable[[], object]], object]
"""Begins an environment of a lock; what raises TenvError if the lock can't be installed is called meanwhile."""


def check(job: Creation, begin: Begin) -> None:
    """Apply the rules before locking: a host that can't build must not spend the minutes.

    Args:
        job: The job.
        begin: Is called before the rules are asked, and at most once.

    Raises:
        TenvError: There is no lock to install, or a rule forbids it.
    """

    def use(judged: JudgedLock) -> Lock | None:
        return judged.usable(job.target, frozen=job.frozen, written=job.written, kept=job.kept)

    def begin_unjudged(lock: Lock, judged: Callable[[], JudgedLock]) -> None:
        def require() -> None:
            if use(judged()) is None:
                raise LockStaleError("it is to be solved again")

        if there:
            begin(lock, require)

    there = job.prefix.parent.is_dir()  # otherwise that folder would stay behind for what can't be made
    job.judged = judge_lock(job.target, job.lock_read, features=job.features, begin=begin_unjudged)
    lock = use(job.judged)
    job.ask_rules(lock)
    if lock:
        job.lock = lock
