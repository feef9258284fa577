"""The packages of a first environment, which uv or rattler put there while the rules are asked.

Nothing is there yet that could be lost: where a rule or anything else ends the command, the prefix goes again.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from tenv.core.errors import StorageError, TenvError
from tenv.core.files import remove_tree
from tenv.core.prefix import MARKER
from tenv.install.ahead import is_first
from tenv.install.creating import write_creating
from tenv.install.creation import Creation
from tenv.install.plan import make_plan
from tenv.locks.lock import Lock
from tenv.sources.conda.source import CondaWork
from tenv.sources.wheels.early_install import EarlyInstall
from tenv.sources.wheels.source import WheelWork
from tenv.sources.wheels.virtual_environment import make_environment

__all__ = ["begin_early"]


def begin_early(
    job: Creation,
    lock: Lock,
    judge: Callable[[], object],
    hold: Callable[[], AbstractContextManager[None]],
    held: contextlib.ExitStack,
) -> None:
    """Begin a first environment where its plan follows from the lock alone, and few files have to be fetched.

    What fails meanwhile is left to the steps after the rules, which report it.

    Args:
        job: The job; `begun` tells whether this has been done.
        lock: The lock to install.
        judge: Raises TenvError where it can't be installed; packages are put there only after that.
        hold: Locks the folder for this process, if no other one holds it.
        held: Gets what ends when the command ends, and what it removes if the command fails before `installing`.
    """
    with contextlib.suppress(TenvError), contextlib.ExitStack() as stack:
        if _may_begin(job, lock):
            stack.enter_context(hold())
            if not os.path.lexists(job.prefix):  # another process may have made it
                stack.enter_context(_begun(job, lock, judge))
                held.push(stack.pop_all())


def _may_begin(job: Creation, lock: Lock) -> bool:
    on = job.platform
    others = (lock.archives, lock.trees, *lock.others.values())
    if not is_first(job) or any(rows.get(on) for rows in others) or any(work.python() for work in job.works):
        return False
    minors = lock.python_minors(on)
    conda = bool(lock.conda.get(on))
    if conda and (lock.left_out or not any(isinstance(work, CondaWork) and work.early for work in job.works)):
        return False
    if conda and (lock.conda_python(on) or not (minors or job.target.manifest.python)):
        return True
    found = job.uv.interpreters(minors) if minors else ()
    if conda or not found:
        return bool(found)
    return EarlyInstall.suits(job.uv, job.prefix, lock.wheels_for(on, found[0].version.major_minor))


@contextlib.contextmanager
def _begun(job: Creation, lock: Lock, judge: Callable[[], object]) -> Iterator[None]:
    """Begin an environment; where the body fails before the step `installing`, nothing of it stays."""
    written = False
    try:
        job.lock, job.unfit_pythons = lock, ()  # those of no checkout
        job.plan = make_plan(job)
        write_creating(job)
        job.begun = written = True
        if lock.conda.get(job.platform):
            _link_conda(job, judge)
        else:
            _install_wheels(job, lock, judge)
        yield
    except BaseException:
        for work in job.works:
            work.close()
        if written and not job.begun:  # the step `installing` has taken it over
            raise
        _forget(job)
        if job.begun:
            job.begun = False
            # The first error is the one to report.
            with contextlib.suppress(StorageError), job.context.registry().forgetting(job.prefix):
                remove_tree(job.prefix, MARKER)
        raise


def _forget(job: Creation) -> None:
    """Forget what followed from the lock, since another one may follow."""
    for fact in ("lock", "plan", "unfit_pythons"):
        vars(job).pop(fact, None)
    for work in job.works:
        if isinstance(work, WheelWork):
            work.early = None


def _prepare(judge: Callable[[], object]) -> Iterator[None]:
    """Do what is to be done while uv makes the virtual environment; the rest only as long as it does."""
    judge()
    yield
    import tenv.checks.before_create  # noqa: F401 (what is asked next)


def _link_conda(job: Creation, judge: Callable[[], object]) -> None:
    """Let the conda packages be linked, after the virtual environment where the Python is not one of them."""
    if job.plan.python and not job.plan.own_python:
        make_environment(job.uv, job.prefix, job.plan.python.path, _prepare(judge))
    judge()
    for work in job.works:
        if isinstance(work, CondaWork) and work.early:
            work.early.go(job.lock.conda[job.platform])


def _install_wheels(job: Creation, lock: Lock, judge: Callable[[], object]) -> None:
    for work in job.works:
        if isinstance(work, WheelWork) and job.plan.python:
            wheels = lock.wheels_for(job.platform, job.plan.minor)
            work.early = EarlyInstall(job.uv, job.prefix, job.plan.python.path, wheels, _prepare(judge))
