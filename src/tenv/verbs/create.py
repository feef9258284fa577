"""Create an environment from its lock, finish one that was interrupted, or find that there is nothing to do."""

import os
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from tenv import __version__
from tenv.activation.changes import ACTIVATION
from tenv.activation.shells.interface import SHELLS
from tenv.core.errors import ForeignFolderError, HostError, LockMissingError, LockStaleError, TenvError, UsageError
from tenv.core.files import digest_bytes, exclusive, make_folder, write_atomic
from tenv.environment.state import Environment, State, Status
from tenv.host.machine import current_platform
from tenv.install.python import has_python
from tenv.install.system_tools import Taken, retime, take_from_machine
from tenv.locks.lock_file import read_lock
from tenv.project.context import Context
from tenv.targets.manifest import Manifest
from tenv.targets.search import Target
from tenv.toolchain.discover import discover

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenv.checks.before_create import Surroundings
    from tenv.checks.rules.interface import Finding

__all__ = ["Created", "LockMode", "Request", "create"]


class LockMode(StrEnum):
    """What `create` may do about the lock."""

    UPDATE = "update"
    LOCKED = "locked"
    FROZEN = "frozen"


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of `create`.

    Attributes:
        target: The target's name.
        prefix: Where to; the target's own place when None.
        mode: What may be done about the lock.
        lock_file: A lock to use instead of the one that is found.
        python: A Python minor or program; None to choose.
        exact: Remove what tenv did not install.
        wait: Wait for another process that is at the same environment.
        check: Stop where the rules say that the target can't be built here.
        around: The machine and the PyTorch to judge by; None for this machine and the checkout here, if any.
        repair: Look at every file, and fetch and install again what is not as it was put there.
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
    """What `create` did.

    Attributes:
        target: The target's name.
        prefix: Where the environment is.
        state: Its state now.
        lock: The lock's file.
        changed: Whether anything was done.
        seconds: How long it took.
        notes: What a person should know.
        findings: What the rules had to say; nothing when there was nothing to do.
    """

    target: str
    prefix: Path
    state: State
    lock: Path
    changed: bool
    seconds: float
    notes: tuple[str, ...] = ()
    findings: "tuple[Finding, ...]" = ()


def _ignore(findings: "Sequence[Finding]") -> None:
    """Take findings that nobody wants to hear."""


def create(context: Context, request: Request, tell: "Callable[[Sequence[Finding]], None]" = _ignore) -> Created:
    """Create the environment of a target, or bring it up to date with its lock.

    Args:
        context: What every verb is given.
        request: What is asked.
        tell: Told what the rules have to say, before anything is done.

    Raises:
        UnfitHostError: The target can't be built on this machine.
        TenvError: Anything on the way went wrong; the environment is then as it was, or marked as not ready.
    """
    start = time.monotonic()
    target = _find_target(context, request)
    environment = context.environment(target.name, request.prefix)
    _check_prefix(environment.prefix)
    _check_owner(environment, target)
    taken = _take(context, target.manifest, environment)
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    changed = False
    state = _current_state(context, target, request, environment, taken)
    if state is None:
        _check_platform(target.manifest)
        target, findings = _check_and_lock(context, target, request, tell)
        with _hold(context, request, environment):
            # Another process may have been faster.
            state = _current_state(context, target, request, environment, taken)
            if state is None:
                state, notes = _make(context, target, request, environment, taken)
                changed = True
    elif taken.touched:
        with _hold(context, request, environment):
            retime(environment, target.name)
    seconds = time.monotonic() - start
    return Created(target.name, environment.prefix, state, target.lock_file, changed, seconds, notes, findings)


def _find_target(context: Context, request: Request) -> Target:
    target = context.places.find(request.target)
    if request.lock_file is None:
        return target
    return replace(target, lock_file=request.lock_file, lock_home=request.lock_file)


def _check_owner(environment: Environment, target: Target) -> None:
    """Refuse a folder that holds the environment of another target."""
    state = environment.state()
    if state and state.status is not Status.BROKEN and state.target != target.name:
        raise ForeignFolderError(
            f"{environment.prefix} is an environment of `{state.target}`",
            hint="name another folder with `--prefix`, or remove that environment first",
        )


def _take(context: Context, manifest: Manifest, environment: Environment) -> Taken:
    """Choose what the target takes from this machine, before anything is written; what it lacks ends the command."""
    here = manifest.on(current_platform())
    if here.system:
        _check_platform(manifest)
    return take_from_machine(context, here, environment)


def _current_state(
    context: Context, target: Target, request: Request, environment: Environment, taken: Taken
) -> State | None:
    """Return the state of an environment that already is what is asked for; None when there is something to do."""
    state = environment.state()
    if state is None or state.status is not Status.READY or request.exact or request.repair or not taken.same:
        return None
    same = _is_made_from(state, target, request) and has_python(environment, request.python, state.python)
    if not same or not _is_there(environment, state):
        return None
    return state if _compat_is_right(context, target, request, environment) else None


def _compat_is_right(context: Context, target: Target, request: Request, environment: Environment) -> bool:
    """Tell whether cuda-compat is used where the driver asks for it; asked only where the environment holds one."""
    if discover(environment.prefix).compat is None:
        return True
    from tenv.checks.cuda_compat import is_as_allowed  # noqa: PLC0415 (late: few environments have it)

    return is_as_allowed(context, target, environment, request.around)


def _is_made_from(state: State, target: Target, request: Request) -> bool:
    """Tell whether an environment was made here by this tenv, from the lock and the manifest of today."""
    if state.written_by != __version__:  # another tenv may lay out the toolkit or the activation in another way
        return False
    try:
        lock = digest_bytes(target.lock_file.read_bytes())
    except OSError:
        return False
    manifest_counts = request.mode is not LockMode.FROZEN
    return (
        state.platform == current_platform()
        and state.lock == lock
        and not (manifest_counts and state.manifest != target.manifest.settings_digest())
    )


def _is_there(environment: Environment, state: State) -> bool:
    """Tell whether all that a state names is in the environment, by names alone."""
    return (
        all(records.hold(packages) for records, packages in environment.owned(state))
        and (not state.python or discover(environment.prefix).python.exists())
        and all((environment.meta / name).is_file() for name in (ACTIVATION, *(shell.SCRIPT for shell in SHELLS)))
    )


def _check_prefix(prefix: Path) -> None:
    """Refuse a folder whose name can't stand in PATH or in the first line of a script."""
    if any(os.pathsep in part or not part.isprintable() for part in prefix.parts):
        raise UsageError(
            f"{str(prefix)!r} can't hold an environment: PATH and scripts can't name it",
            hint=f"choose a folder whose path has no `{os.pathsep}` and no control characters",
        )


def _check_platform(manifest: Manifest) -> None:
    """Refuse a platform for which there is nothing to install, whatever the rules are told to overlook."""
    platform = current_platform()
    if platform not in manifest.platforms:
        raise HostError(
            f"the target {manifest.name} is for {', '.join(manifest.platforms)}; this host is {platform}",
            hint="add the platform to the manifest, then `tenv lock`",
        )


def _check_and_lock(
    context: Context, target: Target, request: Request, tell: "Callable[[Sequence[Finding]], None]"
) -> "tuple[Target, tuple[Finding, ...]]":
    """Ask the rules, and return the target with a lock that may be used, made where it has to be and may be.

    The rules are asked before a lock is made, since a machine that can't build should not take the minutes, and once
    more about the new one.
    """
    from tenv.checks import before_create as precheck  # noqa: PLC0415 (late: 30 ms that a create with nothing to do can't spare)

    stale = None if request.mode is LockMode.FROZEN else _staleness(target)
    # A lock that somebody hands over is used or refused, never written.
    if stale and (request.mode is LockMode.LOCKED or request.lock_file is not None):
        raise stale
    around = (request.around or precheck.look_around(context)) if request.check else None
    findings = precheck.require_build(target, around, locked=not stale) if around else ()
    tell(findings)
    if stale:
        from tenv.verbs.lock import lock_target  # noqa: PLC0415 (late, as above)

        locked = lock_target(context, target)
        context.progress.say(f"{locked.path}: {'; '.join(locked.differences)}: locked anew")
        target = replace(target, lock_file=locked.path)
        known, findings = findings, precheck.require_build(target, around, locked=True) if around else ()
        tell([finding for finding in findings if finding not in known])
    return target, findings


def _staleness(target: Target) -> TenvError | None:
    """Return why there is no lock that may be used as it is; None when there is one."""
    from tenv.verbs.lock import check_target_lock  # noqa: PLC0415 (late, as above)

    try:
        check_target_lock(target)
    except (LockMissingError, LockStaleError) as error:
        return error
    return None


def _hold(context: Context, request: Request, environment: Environment) -> AbstractContextManager[None]:
    environment.check_ours()
    make_folder(environment.prefix.parent)
    if request.prefix is None:
        ignore = environment.prefix.parent.parent / ".gitignore"
        if context.places.project and not ignore.exists():
            write_atomic(ignore, "*\n")
    return exclusive(
        environment.prefix,
        f"tenv create {request.target}",
        lambda sentence: context.progress.say(f"waiting: {sentence}"),
        None if request.wait else 0,
    )


def _make(
    context: Context, target: Target, request: Request, environment: Environment, taken: Taken
) -> tuple[State, tuple[str, ...]]:
    """Make the environment from its lock; return its state, and what a person should know."""
    from tenv.install.build import Job, make  # noqa: PLC0415 (late, as above)

    made = make(
        Job(
            context,
            target,
            environment,
            taken,
            lock=read_lock(target.lock_file, target.name),
            old=environment.state(),
            python=request.python,
            exact=request.exact,
            repair=request.repair,
            frozen=request.mode is LockMode.FROZEN,
            around=request.around,
        )
    )
    return made.state, made.notes
