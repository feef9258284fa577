"""Create an environment from its lock, finish an interrupted one, or find that it is up to date."""

import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBusyError, ForeignFolderError, HostError, LockMissingError, UsageError
from tenv.core.files import exclusive, make_folder, write_atomic
from tenv.core.other_users import closed_below, closed_part
from tenv.core.user_folders import user_home
from tenv.environment.state import State, Status
from tenv.environment.trust import needed_names
from tenv.host.machine import current_platform
from tenv.install.creation import CreateRequest, Creation, LockMode
from tenv.install.for_others import make_folder_for_others, open_to_others, require_open
from tenv.project.context import Context, without_beside
from tenv.sources.interface import NeededFile
from tenv.sources.owners import unmanaged_files
from tenv.targets.search import Target, require_features, sister_hint
from tenv.verbs.lock_place import mode_by_variables
from tenv.verbs.lock_standing import note_current

if TYPE_CHECKING:
    from tenv.checks.rules.interface import Finding

__all__ = ["CreateRequest", "LockMode"]


@dataclass(frozen=True, slots=True)
class Created:
    """The result of `create`."""

    found: Target
    """The target, with the lock that was installed."""
    prefix: Path
    """The folder of the environment."""
    state: State
    """Its state after the call."""
    changed: bool
    """Whether the call changed the environment."""
    seconds: float
    """The duration."""
    notes: tuple[str, ...] = ()
    """Notes for the user, one sentence each."""
    findings: "tuple[Finding, ...]" = ()
    """The findings of the rules; empty if the environment was up to date."""

    @property
    def target(self) -> str:
        """The target's name."""
        return self.found.name

    @property
    def lock(self) -> Path:
        """The lock's file."""
        return self.found.lock_file


@dataclass(frozen=True, slots=True)
class Preview:
    """The steps of a `create`."""

    found: Target
    """The target, with its lock."""
    prefix: Path
    """The folder of the environment."""
    changed: bool
    """Whether it would change."""
    needs: tuple[NeededFile, ...] = ()
    """The files that it would install."""
    lines: tuple[str, ...] = ()
    """The download and the size on the disk, in words."""
    findings: "tuple[Finding, ...]" = ()
    """The findings of the rules."""


def _ignore(findings: "Sequence[Finding]") -> None:
    """Ignore findings."""


def create(
    context: Context, request: CreateRequest, report: "Callable[[Sequence[Finding]], None]" = _ignore
) -> Created:
    """Create the environment of a target, or update it to its lock.

    Args:
        context: The context of the verb.
        request: The request.
        report: Receives the findings of the rules before any change.

    Raises:
        UnfitHostError: The target can't be built on this host.
        TenvError: A step failed. The environment is then unchanged, or its state is not `ready`.
    """
    start = time.monotonic()
    while True:
        try:
            return _create(context, request, report, start)
        except _ChangedError:
            context.progress.say("the manifest, the lock or the environment has changed meanwhile: reading them again")


def preview(
    context: Context, request: CreateRequest, report: "Callable[[Sequence[Finding]], None]" = _ignore
) -> Preview:
    """Return the plan of `create`, and change nothing: no lock is written, and no Python is downloaded.

    A target whose lock `create` would write is locked without writing it.

    Raises:
        TenvError: `create` would end so before its first change.
    """
    job = _job(context, request, report)
    _looked_at(job)
    if job.is_current() and not request.anew:
        return Preview(job.target, job.prefix, changed=False)
    from tenv.install import make  # late: as in `_make`
    from tenv.install.plan import make_plan

    _check_platform(job)
    make.check(job)
    if not hasattr(job, "lock"):
        _lock(job, dry_run=True)
    job.fetches = False
    job.plan = make_plan(job)
    job.plan = job.plan.anew() if request.anew else job.plan
    needs = make.needs_of(job)
    if context.carried:  # which has every file, or `create` fails
        needs = tuple(replace(need, cached=True) for need in needs)
    lines = make.download_lines(needs, "the bundle" if context.carried else "caches")
    return Preview(job.target, job.prefix, True, needs, tuple(lines), job.findings)


class _ChangedError(Exception):
    """The manifest, the lock or the environment has changed since it was read; nothing was done yet."""


def _create(
    context: Context, request: CreateRequest, report: "Callable[[Sequence[Finding]], None]", start: float
) -> Created:
    job = _job(context, request, report)
    _looked_at(job)
    notes: tuple[str, ...] = ()
    changed = not job.is_current() or request.anew
    if changed:
        changed, notes = _make(job)
    else:
        _catch_up(job)
    state = job.state or job.old
    assert state is not None  # noqa: S101 (`is_current` found it or `_make` wrote it)
    if request.lock_file is None:
        note_current(context, job.environment, state)
    if request.for_others:
        closed = open_to_others(job.prefix, unmanaged_files(job.prefix, state.owned))
        notes = (*notes, *_about_others(job, closed))
    seconds = time.monotonic() - start
    return Created(job.target, job.prefix, state, changed, seconds, notes, job.findings)


def _about_others(job: Creation, closed: Sequence[str]) -> Iterator[str]:
    """Yield which files and folders stay closed, and how others use an environment that their settings refuse."""
    from tenv.targets.config import SYSTEM_FILE, system_safe_folders

    if closed:
        more = f" and {len(closed) - 1} more stay" if len(closed) > 1 else " stays"
        yield (
            f"{closed[0]}{more} closed to other users, since no package has it: "
            f"`chmod -R a+rX {shlex.quote(str(job.prefix / closed[0]))}` opens it"
        )
    for name, request in job.manifest.wheels.items():
        tree = request.tree
        if tree and tree.editable and (folder := closed_part(tree.folder)):
            yield (
                f"other users can't import {name}: it stays in {tree.folder}, and they can't enter {folder}; without "
                "`editable` in the manifest the environment gets a copy"
            )
    if not any(closed_below(job.prefix, Path(os.path.realpath(safe))) for safe in system_safe_folders()):
        folder = job.prefix.parent if closed_below(job.prefix, job.prefix.parent) else job.prefix
        yield f'other users use it once {SYSTEM_FILE}, of root, has its folder: safe-folders = ["{folder}"]'


def _looked_at(job: Creation) -> None:
    """Refuse a folder that can't hold the environment, and a host that lacks a tool of the system."""
    _check_prefix(job)
    if job.for_others:
        require_open(job.request.prefix)
    job.environment.check_real()
    job.look()
    if not job.request.anew:
        _check_owner(job)
    if job.fault is None and not (job.request.anew and job.environment.meta.is_dir()):
        job.environment.check_ours()
    if job.manifest.system:
        _check_platform(job)
    for work in job.works:  # a missing system tool ends the command before any write
        work.look()


def _make(job: Creation) -> tuple[bool, tuple[str, ...]]:
    """Make the environment; return whether it changed, and notes for the user."""
    from tenv.install import make  # late: an environment that is up to date is not judged

    _check_platform(job)
    if job.request.anew:  # the environment that is put aside has the features
        job.request = replace(job.request, features=job.features)
    deciding = (
        make.Step("checking", make.check, named=False),
        make.Step("locking", _lock, needed=lambda job: not hasattr(job, "lock")),
    )
    make.run_steps(job, deciding)
    with _hold(job), make.put_aside_for(job) if job.request.anew else nullcontext():
        current = job.is_current() and not job.request.anew  # another process may have made it meanwhile
        _check_owner(job)
        if current:
            return False, ()
        make.make(job)
        return True, tuple(make.notes(job))


def _catch_up(job: Creation) -> None:
    """Write down harmless changes of the machine, and mark an accepted environment."""
    accepting = any(work.has_harmless_changes() for work in job.works)
    registry = job.context.registry()
    marked = registry.is_marked(job.prefix)
    shared = registry.is_shared(job.prefix)
    if not shared and job.environment.leftovers():
        with (
            suppress(EnvironmentBusyError),
            exclusive(job.prefix, f"tenv create {job.request.target}", lambda _: None, 0),
        ):
            job.environment.tidy()  # of a command that was killed before it changed anything
    if not accepting and (marked or shared):
        return
    with _hold(job):
        if not job.is_current():
            raise _ChangedError
        if accepting:
            for work in job.works:
                work.accept()
        registry.mark(job.prefix, needed_names(job.prefix, job.old.python if job.old else ""))


def _require_unchanged(job: Creation) -> None:
    """Raise _ChangedError if the manifest, the lock or the held features have changed since they were read.

    Another process may change them while this one solves, or waits for it.
    """
    features = job.features
    job.look()
    if job.features != features or _find_target(job.context, job.request) != job.target or job.has_other_lock():
        raise _ChangedError


def _find_target(context: Context, request: CreateRequest) -> Target:
    """Return the target, with the lock of the request."""
    target = context.places.find(request.target)
    if request.lock_file is None:
        return target
    if not request.lock_file.exists():
        hint = f"`tenv lock {target.name} --lock-file {shlex.quote(str(request.lock_file))}` writes it"
        raise LockMissingError(f"there is no lock for `{target.name}` ({request.lock_file})", hint=hint)
    found = replace(target, lock_file=request.lock_file, lock_home=request.lock_file, lock_origin=None)
    return context.places.followed(found)


def _job(context: Context, request: CreateRequest, report: "Callable[[Sequence[Finding]], None]") -> Creation:
    target = _find_target(context, request)
    require_features(target, request.features or ())
    environment = context.environment(target.name, request.prefix)
    if context.environ.get("TENV_PREFIX") == str(environment.prefix) and target.manifest.beside:
        from tenv.activation.levels import deactivated  # late: few targets are beside another environment

        context = replace(context, environ=deactivated(context.environ))  # else CC of tenv would count as the user's
    job = Creation(without_beside(context, target), request, target, environment, current_platform(), report)
    job.builder = _build_packages
    return job


def _build_packages(job: Creation) -> None:
    from tenv.verbs.torch_packages import build_packages  # late: few targets compile a package

    build_packages(job)


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


def _check_prefix(job: Creation) -> None:
    """Raise an error for a prefix that PATH or the first line of a script can't hold, or that is to hold more.

    Its removal would take the user's home folder or other environments away; in a new container these are empty.
    """
    prefix, places = job.prefix, job.context.places
    if any(os.pathsep in part or not part.isprintable() for part in prefix.parts):
        raise UsageError(
            f"{str(prefix)!r} can't be a prefix: PATH and scripts can't name it",
            hint=f"`--prefix FOLDER` with no `{os.pathsep}` and no control characters in its path",
        )
    held = {"your home folder": user_home(), "the folder of tenv's environments": places.environments()}
    for what, folder in (held | {"the folder of tenv's data": places.data}).items():
        if Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(prefix)):
            raise ForeignFolderError(
                f"{prefix} is, or holds, {what} ({folder}), so it is no folder for an environment",
                hint="`--prefix FOLDER` names an empty or new folder",
            )


def _check_platform(job: Creation) -> None:
    """Raise an error for a platform that the target does not serve, even with ``--no-check``."""
    manifest = job.target.manifest
    if job.platform not in manifest.platforms:
        raise HostError(
            f"the target {manifest.name} is for {', '.join(manifest.platforms)}; this host is {job.platform}",
            hint=sister_hint(manifest, job.platform) or "add the platform to the manifest, then `tenv lock`",
        )


def _lock(job: Creation, *, dry_run: bool = False) -> None:
    """Lock the target, and apply the rules to the new lock; with `dry_run`, write no lock."""
    from tenv.checks.lock_verdict import judge_lock  # late: as above
    from tenv.locks.lock_features import take
    from tenv.verbs.lock import lock_target

    # The lock is solved with every feature, so it is judged with every feature too.
    judged = judge_lock(job.target, job.lock_read) if job.target.manifest.features else job.judged
    locked = lock_target(job.context, job.target, judged=judged, dry_run=dry_run)
    missing = judged is not None and isinstance(judged.error, LockMissingError)
    done = "would be locked" if dry_run else "locked"
    why = f"no lock yet: {done}" if missing else f"{'; '.join(locked.differences)}: {done} again"
    job.context.progress.say(f"{locked.path}: {why}")
    target = replace(job.target, lock_file=locked.path, lock_origin=job.target.home_origin)
    target = job.context.places.followed(target)
    if job.features:  # a lock that was good as a whole may still lack what one feature needs
        judge_lock(target, locked.lock.text, features=job.features).require(target)
    job.take_lock(take(locked.lock, job.features), target)
    job.ask_rules(job.lock)


@contextmanager
def _hold(job: Creation) -> Iterator[None]:
    """Hold the lock on the environment, and forget the values that were read of it before."""
    request = job.request
    (make_folder_for_others if job.for_others else make_folder)(job.prefix.parent)
    if request.prefix is None:
        ignore = job.prefix.parent.parent / ".gitignore"
        own = job.context.places.checkout or job.context.places.project
        if own and not ignore.exists():
            write_atomic(ignore, "*\n", within=own)
    waiting = job.context.progress.say
    with exclusive(job.prefix, f"tenv create {request.target}", waiting, None if request.wait else 0):
        job.forget_prefix()  # another process may have changed it since it was looked at
        _require_unchanged(job)
        yield


def sync(
    context: Context,
    target: str | None,
    prefix: Path | None,
    tell: "Callable[[Sequence[Finding]], None]",
    features: Sequence[str] = (),
) -> Created:
    """Create or update the environment of a target; never write a lock.

    Args:
        context: The context of the verb.
        target: The target; where None, the one of the environment in `prefix`, or the default target.
        prefix: The environment's folder, if it is not the default one.
        tell: Receives the findings.
        features: The features to install beside those that the environment holds.

    Raises:
        LockMissingError, LockStaleError: There is no lock, or it does not satisfy its manifest.
        TenvError: As `create`.
    """
    state = context.environment("", prefix).state() if prefix else None
    name = target or (state.target if state else None) or context.default_target()
    held = (context.environment(name, prefix).state() if features else None) or None
    named = tuple(sorted({*features, *(held.features if held else ())})) if features else None
    mode = LockMode.FROZEN if mode_by_variables() is LockMode.FROZEN else LockMode.LOCKED
    return create(context, CreateRequest(name, prefix, mode, features=named), tell)
