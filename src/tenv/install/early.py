"""The wheels of a first environment, which uv puts there while the rules are asked.

Nothing is there yet that could be lost: where a rule or anything else ends the command, the prefix goes again.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from tenv.core.errors import StorageError, TenvError
from tenv.core.files import remove_tree
from tenv.core.prefix import MARKER
from tenv.install.creation import Creation
from tenv.install.make import write_creating
from tenv.install.plan import make_plan
from tenv.locks.lock import Lock
from tenv.sources.wheels.early_install import EarlyInstall
from tenv.sources.wheels.source import WheelWork

__all__ = ["begin_early"]

_OF_CHECKOUT = ("CMakeLists.txt", "setup.py", "version.txt")
"""Files of which a PyTorch checkout has one: which Python fits it, the rules know."""


def begin_early(
    job: Creation, lock: Lock, hold: Callable[[], AbstractContextManager[None]], held: contextlib.ExitStack
) -> None:
    """Begin a first environment where its plan follows from the lock alone, and uv has its files or fetches few.

    What fails meanwhile is left to the steps after the rules, which report it.

    Args:
        job: The job; `begun` tells whether this has been done.
        lock: The lock to install.
        hold: Locks the folder for this process, if no other one holds it.
        held: Gets what ends when the command ends, and what it removes if the command fails before `installing`.
    """
    with contextlib.suppress(TenvError), contextlib.ExitStack() as stack:
        if _may_begin(job, lock):
            stack.enter_context(hold())
            if not os.path.lexists(job.prefix):  # another process may have made it
                stack.enter_context(_begun(job, lock))
                held.push(stack.pop_all())


def _may_begin(job: Creation, lock: Lock) -> bool:
    on = job.platform
    minors = lock.python_minors(on)
    others = (lock.conda, lock.archives, lock.trees, *lock.others.values())
    if not minors or any(rows.get(on) for rows in others) or os.path.lexists(job.prefix):
        return False
    named = job.python_wanted or "around" in vars(job) or any(work.python() for work in job.works)
    if job.old or job.fault or named or not job.check or any(map(os.path.lexists, _OF_CHECKOUT)):
        return False
    found = job.uv.interpreters(minors)
    return bool(found) and EarlyInstall.suits(job.uv, job.prefix, lock.wheels_for(on, found[0].version.major_minor))


def _load_rules() -> None:
    import tenv.checks.before_create  # noqa: F401 (what is asked next)


@contextlib.contextmanager
def _begun(job: Creation, lock: Lock) -> Iterator[None]:
    """Begin an environment; where the body fails before the step `installing`, nothing of it stays."""
    job.lock, job.unfit_pythons = lock, ()  # those of no checkout
    job.plan = make_plan(job)
    try:
        write_creating(job)
        job.begun = True
        for work in job.works:
            if isinstance(work, WheelWork) and job.plan.python:
                wheels = lock.wheels_for(job.platform, job.plan.minor)
                work.early = EarlyInstall(job.uv, job.prefix, job.plan.python.path, wheels, _load_rules)
        yield
    except BaseException:
        for work in job.works:
            work.close()
        if job.begun:
            job.begun = False
            # The first error is the one to report.
            with contextlib.suppress(StorageError), job.context.registry().forgetting(job.prefix):
                remove_tree(job.prefix, MARKER)
        raise
