"""Create an environment from its lock, finish an interrupted one, or find that it is up to date."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from tenv import __version__
from tenv.activation.changes import ACTIVATION, read_activation
from tenv.activation.shells.interface import SHELLS
from tenv.core.errors import EnvironmentBrokenError, ForeignFolderError, HostError, UsageError
from tenv.core.files import exclusive, make_folder, write_atomic
from tenv.environment.made_files import add_scripts, lacks_scripts
from tenv.environment.state import Environment, State, Status
from tenv.host.machine import current_platform
from tenv.install.creation import Creation
from tenv.install.steps import Step, run_steps
from tenv.project.context import Context
from tenv.sources.owners import holds
from tenv.targets.search import Target
from tenv.verbs.lock_standing import note_current

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenv.checks.before_create import Surroundings
    from tenv.checks.rules.interface import Finding

__all__ = ["CreateRequest", "Created", "LockMode", "create"]


class LockMode(StrEnum):
    """How `create` treats the lock."""

    UPDATE = "update"
    LOCKED = "locked"
    FROZEN = "frozen"
    KEPT = "kept"
    """Like `FROZEN`, for a lock kept in the environment, which need not satisfy the present manifest."""


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """The request for `create`.

    Attributes:
        target: The target's name.
        prefix: The prefix; None for the target's default one.
        mode: How to treat the lock.
        lock_file: A lock to use in place of the target's own; None for its own.
        python: A Python minor or program; None to select one.
        exact: Remove unmanaged files.
        wait: Wait for another process that uses the same environment.
        check: Stop if a rule reports an error about building.
        around: The host and PyTorch to judge by; None for this host and the checkout in the working folder, if any.
        repair: Verify every file, and reinstall packages with changed or missing files.
    """

    target: str
    prefix: Path | None = None
    mode: LockMode = LockMode.UPDATE
    lock_file: Path | None = None
    python: str | None = None
    exact: bool = False
    wait: bool = True
    check: bool = True
    around: "Surroundings | None" = None
    repair: bool = False


@dataclass(frozen=True, slots=True)
class Created:
    """The result of `create`.

    Attributes:
        found: The target, with the lock that was installed.
        prefix: The folder of the environment.
        state: Its state after the call.
        changed: Whether the call changed the environment.
        seconds: The duration.
        notes: Notes for the user, one sentence each.
        findings: The findings of the rules; empty if the environment was up to date.
    """

    found: Target
    prefix: Path
    state: State
    changed: bool
    seconds: float
    notes: tuple[str, ...] = ()
    findings: "tuple[Finding, ...]" = ()

    @property
    def target(self) -> str:
        """The target's name."""
        return self.found.name

    @property
    def lock(self) -> Path:
        """The lock's file."""
        return self.found.lock_file


def _ignore(findings: "Sequence[Finding]") -> None:
    """Ignore findings."""


def create(context: Context, request: CreateRequest, tell: "Callable[[Sequence[Finding]], None]" = _ignore) -> Created:
    """Create the environment of a target, or update it to its lock.

    Args:
        context: The context of the verb.
        request: The request.
        tell: Receives the findings of the rules before any change.

    Raises:
        UnfitHostError: The target can't be built on this host.
        TenvError: A step failed. The environment is then unchanged, or its state is not `ready`.
    """
    start = time.monotonic()
    job = _job(context, request, tell)
    _check_prefix(job.prefix)
    _check_owner(job)
    if job.manifest.system:
        _check_platform(job)
    for work in job.works:  # a missing system tool ends the command before any write
        work.look()
    notes: tuple[str, ...] = ()
    changed = not _is_current(job, request)
    if changed:
        _check_platform(job)
        run_steps(job, _DECIDING)
        with _hold(job, request):
            changed = not _is_current(job, request)  # another process may have made it meanwhile
            if changed:
                notes = _make(job)
    else:
        _catch_up(job, request)
    state = job.state or job.old
    assert state is not None  # noqa: S101 (`_is_current` found it or `_make` wrote it)
    if request.lock_file is None and isinstance(job.lock_read, bytes):
        note_current(context, job.environment, state, job.lock_read)
    seconds = time.monotonic() - start
    return Created(job.target, job.prefix, state, changed, seconds, notes, job.findings)


def _catch_up(job: Creation, request: CreateRequest) -> None:
    """Record harmless changes of system tools, and write the scripts of newly supported shells."""
    accepting = any(work.has_harmless_changes() for work in job.works)
    if not accepting and not lacks_scripts(job.environment):
        return
    with _hold(job, request):
        if accepting:
            for work in job.works:
                work.accept()
        add_scripts(job.environment)


def _job(context: Context, request: CreateRequest, tell: "Callable[[Sequence[Finding]], None]") -> Creation:
    target = context.places.find(request.target)
    if request.lock_file is not None:
        target = replace(target, lock_file=request.lock_file, lock_home=request.lock_file, lock_origin=None)
    return Creation(
        context,
        target,
        context.environment(target.name, request.prefix),
        current_platform(),
        python=request.python,
        exact=request.exact,
        repair=request.repair,
        frozen=request.mode in (LockMode.FROZEN, LockMode.KEPT),
        kept=request.mode is LockMode.KEPT,
        written=request.mode is LockMode.UPDATE and request.lock_file is None,
        check=request.check,
        around=request.around,
        tell=tell,
    )


def _check_owner(job: Creation) -> None:
    """Raise an error if the prefix holds the environment of another target."""
    state = job.environment.state()
    if state and state.status is not Status.BROKEN and state.target != job.target.name:
        raise ForeignFolderError(
            f"{job.prefix} is an environment of `{state.target}`",
            hint="`--prefix FOLDER` names another folder; `tenv remove` removes that environment",
        )


def _is_current(job: Creation, request: CreateRequest) -> bool:
    """Return whether the environment satisfies the request; its state is stored in the job."""
    state = job.old = job.environment.state()
    if state is None or state.status is not Status.READY or request.exact or request.repair:
        return False
    if not all(work.is_current() for work in job.works) or not _is_made_from(state, job):
        return False
    return job.has_python(state.python) and _is_there(state, job) and _compat_is_right(job)


def _compat_is_right(job: Creation) -> bool:
    """Return whether the use of cuda-compat fits the driver; true for an environment without cuda-compat."""
    folder = job.before.compat
    if folder is None:
        return True
    from tenv.checks.cuda_compat import is_allowed, is_as_allowed  # late: few environments hold it

    return is_as_allowed(folder, job.environment, allowed=is_allowed(job.target, job.platform, job.around))


def _is_made_from(state: State, job: Creation) -> bool:
    """Return whether this tenv made the environment on this platform from the present lock and manifest."""
    if state.written_by != __version__:  # another version may lay out toolkit and activation differently
        return False
    return (
        state.platform == job.platform
        and state.lock == job.lock_digest != ""
        and (job.kept or state.manifest == job.target.manifest.settings_digest())
    )


def _is_there(state: State, job: Creation) -> bool:
    """Return whether the environment has every file that its state names, without reading their content."""
    return (
        holds(job.environment, state.owned)
        and (not state.python or job.before.python.exists())
        and _can_be_activated(job.environment)
    )


def _can_be_activated(environment: Environment) -> bool:
    """Return whether the stored activation exists; missing scripts of shells are made from it."""
    scripts = [environment.meta / shell.SCRIPT for shell in SHELLS]
    if not (environment.meta / ACTIVATION).is_file() or any(os.path.lexists(f) and not f.is_file() for f in scripts):
        return False
    if lacks_scripts(environment):
        try:
            read_activation(environment.meta / ACTIVATION)
        except EnvironmentBrokenError:
            return False
    return True


def _check_prefix(prefix: Path) -> None:
    """Raise an error for a prefix that PATH or the first line of a script can't hold."""
    if any(os.pathsep in part or not part.isprintable() for part in prefix.parts):
        raise UsageError(
            f"{str(prefix)!r} can't be a prefix: PATH and scripts can't name it",
            hint=f"`--prefix FOLDER` with no `{os.pathsep}` and no control characters in its path",
        )


def _check_platform(job: Creation) -> None:
    """Raise an error for a platform that the target does not serve, even with ``--no-check``."""
    manifest = job.target.manifest
    if job.platform not in manifest.platforms:
        raise HostError(
            f"the target {manifest.name} is for {', '.join(manifest.platforms)}; this host is {job.platform}",
            hint="add the platform to the manifest, then `tenv lock`",
        )


def _check(job: Creation) -> None:
    """Apply the rules before locking: a host that can't build must not spend the minutes."""
    from tenv.checks.lock_verdict import judge_lock  # late: an environment that is up to date is not judged

    job.judged = judge_lock(job.target, job.lock_read)
    lock = job.judged.usable(job.target, frozen=job.frozen, written=job.written, kept=job.kept)
    job.ask_rules(lock)
    if lock:
        job.lock = lock


def _lock(job: Creation) -> None:
    """Lock the target, and apply the rules to the new lock."""
    from tenv.verbs.lock import lock_target  # late: as above

    locked = lock_target(job.context, job.target, judged=job.judged)
    job.context.progress.say(f"{locked.path}: {'; '.join(locked.differences)}: locked again")
    job.take_lock(locked.lock, replace(job.target, lock_file=locked.path, lock_origin=job.target.home_origin))
    job.ask_rules(locked.lock)


_DECIDING = (
    Step("checking", _check, named=False),
    Step("locking", _lock, needed=lambda job: not hasattr(job, "lock")),
)
"""The steps before the environment changes: apply the rules, then lock if needed."""


@contextmanager
def _hold(job: Creation, request: CreateRequest) -> Iterator[None]:
    """Hold the lock on the environment. After waiting for another process, forget what was read of it."""
    job.environment.check_ours()
    make_folder(job.prefix.parent)
    if request.prefix is None:
        ignore = job.prefix.parent.parent / ".gitignore"
        if job.context.places.project and not ignore.exists():
            write_atomic(ignore, "*\n", within=job.context.places.project)

    def waiting(sentence: str) -> None:
        job.forget_prefix()
        job.context.progress.say(f"waiting: {sentence}")

    with exclusive(job.prefix, f"tenv create {request.target}", waiting, None if request.wait else 0):
        yield


def _make(job: Creation) -> tuple[str, ...]:
    """Make the environment from its lock; return notes for the user."""
    from tenv.install import make  # late: as above

    make.make(job)
    return tuple(make.notes(job))
