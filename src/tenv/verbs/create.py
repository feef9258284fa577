"""Create an environment from its lock, finish an interrupted one, or find that it is up to date."""

import os
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBusyError, ForeignFolderError, HostError, LockMissingError, UsageError
from tenv.core.files import exclusive, make_folder, write_atomic
from tenv.core.toml_reader import nearest
from tenv.environment.state import State, Status
from tenv.environment.trust import needed_names
from tenv.host.machine import current_platform
from tenv.install.creation import Creation
from tenv.install.steps import Step, run_steps
from tenv.install.up_to_date import is_current, note_current_files
from tenv.project.context import Context
from tenv.targets.search import Target
from tenv.verbs.lock_standing import note_current

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenv.checks.before_create import Surroundings
    from tenv.checks.rules.interface import Finding
    from tenv.install.checking import Begin
    from tenv.locks.lock import Lock

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
        anew: Put aside what is there, and make the environment anew.
        features: The features of the target that the environment shall hold; None for those that it holds.
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
    anew: bool = False
    features: tuple[str, ...] | None = None


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
    job.environment.check_real()
    job.look()
    if not request.anew:
        _check_owner(job)
    if job.manifest.system:
        _check_platform(job)
    for work in job.works:  # a missing system tool ends the command before any write
        work.look()
    notes: tuple[str, ...] = ()
    changed = not is_current(job) or request.anew
    if changed:
        from tenv.install.ahead import drop_early, read_ahead  # late: as below

        _check_platform(job)
        with ExitStack() as held:
            if not request.anew:
                read_ahead(job, held)
            run_steps(job, _deciding(partial(_begin_early, job, request, held)))
            if not job.begun:
                drop_early(job)
                held.enter_context(_hold(job, request))
                held.enter_context(_aside(job, request))
                changed = not is_current(job) or request.anew  # another process may have made it meanwhile
                _check_owner(job)
            if changed:
                notes = _make(job)
    else:
        _catch_up(job, request)
    state = job.state or job.old
    assert state is not None  # noqa: S101 (`_is_current` found it or `_make` wrote it)
    if request.lock_file is None and isinstance(job.lock_read, bytes):
        note_current(context, job.environment, state, job.lock_read)
        if not changed and not (request.prefix or request.python or request.around or request.features is not None):
            note_current_files(job, state)
    seconds = time.monotonic() - start
    return Created(job.target, job.prefix, state, changed, seconds, notes, job.findings)


def _catch_up(job: Creation, request: CreateRequest) -> None:
    """Write down harmless changes of the machine, and mark an accepted environment."""
    accepting = any(work.has_harmless_changes() for work in job.works)
    registry = job.context.registry()
    marked = registry.is_marked(job.prefix)
    shared = registry.is_shared(job.prefix)
    if not shared and job.environment.leftovers():
        with suppress(EnvironmentBusyError), exclusive(job.prefix, f"tenv create {request.target}", lambda _: None, 0):
            job.environment.tidy()  # of a command that was killed before it changed anything
    if not accepting and (marked or shared):
        return
    with _hold(job, request):
        if accepting:
            for work in job.works:
                work.accept()
        registry.mark(job.prefix, needed_names(job.prefix, job.old.python if job.old else ""))


def _job(context: Context, request: CreateRequest, tell: "Callable[[Sequence[Finding]], None]") -> Creation:
    target = context.places.find(request.target)
    if request.lock_file is not None:
        if not request.lock_file.exists():
            hint = f"`tenv lock {target.name} --lock-file {shlex.quote(str(request.lock_file))}` writes it"
            raise LockMissingError(f"there is no lock for `{target.name}` ({request.lock_file})", hint=hint)
        target = replace(target, lock_file=request.lock_file, lock_home=request.lock_file, lock_origin=None)
    _check_features(target, request.features or ())
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
        features=request.features,
    )


def _check_features(target: Target, names: Sequence[str]) -> None:
    """Refuse a feature that the manifest does not have."""
    known = target.manifest.features
    for name in names:
        if name not in known:
            listed = f"it has {', '.join(known)}" if known else "it has none"
            hint = nearest(name, known) or f"{listed}; `tenv show {target.name}` lists what each brings"
            raise UsageError(f"{target.name} has no feature `{name}`", hint=hint)


def _check_owner(job: Creation) -> None:
    """Refuse a folder that this user did not make, and one that holds the environment of another target."""
    if job.fault and not job.fault.is_ours:
        raise job.fault.error()
    state = job.old
    if state and state.status is not Status.BROKEN and state.target != job.target.name:
        raise ForeignFolderError(
            f"{job.prefix} is an environment of `{state.target}`",
            hint="`--prefix FOLDER` names another folder; `tenv remove` removes that environment",
        )


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
        from tenv.targets.search import sister_hint  # late: only for this error

        raise HostError(
            f"the target {manifest.name} is for {', '.join(manifest.platforms)}; this host is {job.platform}",
            hint=sister_hint(manifest, job.platform) or "add the platform to the manifest, then `tenv lock`",
        )


def _begin_early(
    job: Creation, request: CreateRequest, held: ExitStack, lock: "Lock", judge: "Callable[[], object]"
) -> None:
    """Begin a first environment before the rules have an answer, where that is possible."""
    from tenv.install.early import begin_early  # late: as above

    if not request.anew:
        begin_early(job, lock, judge, lambda: _hold(job, replace(request, wait=False)), held)


def _lock(job: Creation) -> None:
    """Lock the target, and apply the rules to the new lock."""
    from tenv.checks.lock_verdict import judge_lock  # late: as above
    from tenv.locks.lock_features import take
    from tenv.verbs.lock import lock_target

    # The lock is solved with every feature, so it is judged with every feature too.
    judged = judge_lock(job.target, job.lock_read) if job.target.manifest.features else job.judged
    locked = lock_target(job.context, job.target, judged=judged)
    missing = judged is not None and isinstance(judged.error, LockMissingError)
    why = "no lock yet: locked" if missing else f"{'; '.join(locked.differences)}: locked again"
    job.context.progress.say(f"{locked.path}: {why}")
    target = replace(job.target, lock_file=locked.path, lock_origin=job.target.home_origin)
    job.take_lock(take(locked.lock, job.features), target)
    job.ask_rules(job.lock)


def _check(job: Creation, begin: "Begin") -> None:
    from tenv.install.checking import check  # late: an environment that is up to date is not judged

    check(job, begin)


def _deciding(begin: "Begin") -> tuple[Step, ...]:
    """Return the steps before the environment changes: apply the rules, then lock if needed."""
    return (
        Step("checking", partial(_check, begin=begin), named=False),
        Step("locking", _lock, needed=lambda job: not hasattr(job, "lock")),
    )


@contextmanager
def _hold(job: Creation, request: CreateRequest) -> Iterator[None]:
    """Hold the lock on the environment, and forget what was read of it before."""
    if job.fault is None and not request.anew:
        job.environment.check_ours()
    make_folder(job.prefix.parent)
    if request.prefix is None:
        ignore = job.prefix.parent.parent / ".gitignore"
        own = job.context.places.checkout or job.context.places.project
        if own and not ignore.exists():
            write_atomic(ignore, "*\n", within=own)

    def waiting(sentence: str) -> None:
        job.context.progress.say(f"waiting: {sentence}")

    with exclusive(job.prefix, f"tenv create {request.target}", waiting, None if request.wait else 0):
        job.forget_prefix()  # another process may have changed it since it was looked at
        yield


def _aside(job: Creation, request: CreateRequest) -> AbstractContextManager[None]:
    """Put aside what is there, for `--anew`, until the new environment is ready."""
    if not request.anew:
        return nullcontext()
    from tenv.install.aside import put_aside_for  # late: a rare option

    return put_aside_for(job)


def _make(job: Creation) -> tuple[str, ...]:
    """Make the environment from its lock; return notes for the user."""
    from tenv.install import make  # late: as above

    make.make(job)
    return tuple(make.notes(job))
