"""Create an environment from its lock, finish one that was interrupted, or find that there is nothing to do."""

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from tenv.activation import Activation, derive
from tenv.environment import Environment, State, Status
from tenv.errors import EnvironmentBrokenError, HostError, LockMissingError, LockStaleError, UsageError
from tenv.files import digest_bytes, exclusive, folder_size, make_folder, storage_errors, write_atomic
from tenv.host.interface import Missing
from tenv.host.machine import current_platform, glibc, probe
from tenv.lock import Lock, Wheel, read_lock
from tenv.manifest import Manifest
from tenv.providers.pypi import Interpreter, Uv
from tenv.shells import posix
from tenv.targets import Target
from tenv.toolchain import assemble, discover
from tenv.versions import Version
from tenv.workflows.context import Context
from tenv.workflows.lock import check_target_lock, lock_target

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
    """

    target: str
    prefix: Path | None = None
    mode: LockMode = LockMode.UPDATE
    lock_file: Path | None = None
    python: str | None = None
    exact: bool = False
    wait: bool = True


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
    """

    target: str
    prefix: Path
    state: State
    lock: Path
    changed: bool
    seconds: float
    notes: tuple[str, ...] = ()


def create(context: Context, request: Request) -> Created:
    """Create the environment of a target, or bring it up to date with its lock.

    Raises:
        TenvError: Anything on the way went wrong; the environment is then as it was, or marked as not ready.
    """
    start = time.monotonic()
    target = context.places.find(request.target)
    if request.lock_file is not None:
        target = replace(target, lock_file=request.lock_file, lock_home=request.lock_file)
    environment = context.environment(target.name, request.prefix)
    state = environment.state()
    notes: list[str] = []
    changed = not (state and _is_current(target, request, environment, state))
    if changed:
        _check_host(target.manifest)
        target = _find_lock(context, target, request.mode)
        with _hold(context, request, environment):
            state = environment.state()  # another process may have made it while we waited
            changed = not (state and _is_current(target, request, environment, state))
            if changed:
                state = _make(context, target, request, environment, notes)
    if state is None:  # unreachable: `changed` is true without a state
        raise EnvironmentBrokenError(f"{environment.prefix} has no state")
    return Created(
        target.name, environment.prefix, state, target.lock_file, changed, time.monotonic() - start, tuple(notes)
    )


def _is_current(target: Target, request: Request, environment: Environment, state: State) -> bool:
    """Tell whether an environment already is what is asked for, by digests and names alone."""
    if state.status is not Status.READY or request.exact or state.platform != current_platform():
        return False
    try:
        lock = digest_bytes(target.lock_file.read_bytes())
    except OSError:
        return False
    if state.lock != lock or (
        request.mode is not LockMode.FROZEN and state.manifest != target.manifest.settings_digest()
    ):
        return False
    if request.python and request.python != state.python:
        return False
    installed = environment.installed()
    there = all(installed.get(name) == version for name, version in state.packages.items())
    return there and discover(environment.prefix).python.exists() and (environment.meta / "activation.json").is_file()


def _check_host(manifest: Manifest) -> None:
    """Refuse a host for which the target is not made."""
    platform = current_platform()
    if platform not in manifest.platforms:
        raise HostError(
            f"the target {manifest.name} is for {', '.join(manifest.platforms)}; this host is {platform}",
            hint="add the platform to the manifest, then `tenv lock`",
        )
    needed = manifest.requirements.glibc
    if needed and platform.startswith("linux"):
        have = glibc()
        if isinstance(have, Missing) or have.value < needed:
            found = have.reason if isinstance(have, Missing) else f"this host has {have.value} ({have.origin})"
            raise HostError(
                f"the target {manifest.name} needs glibc {needed} or newer: {found}",
                hint="use a newer distribution, or a container of one",
            )


def _find_lock(context: Context, target: Target, mode: LockMode) -> Target:
    """Return the target with a lock that may be used, making one where that is allowed."""
    if mode is LockMode.FROZEN:
        return target
    try:
        check_target_lock(target)
    except (LockMissingError, LockStaleError):
        if mode is LockMode.LOCKED:
            raise
        locked = lock_target(context, target)
        context.progress.say(f"{locked.path}: {'; '.join(locked.differences)}: locked anew")
        return replace(target, lock_file=locked.path)
    return target


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


def _make(context: Context, target: Target, request: Request, environment: Environment, notes: list[str]) -> State:
    """Install the files of the lock, then assemble, activate and mark the environment as ready."""
    environment.check_ours()
    lock = read_lock(target.lock_file, target.name)
    platform = current_platform()
    uv = context.uv()
    old = environment.state()
    python = _choose_python(uv, target, lock, platform, request.python, old)
    minor = python.version.major_minor
    if not python.headers:
        notes.append(
            f"{python.path} has no Python.h, so that PyTorch can't be built with it: "
            f"install its headers (Debian, Ubuntu: python{minor}-dev)"
        )
    plan = _plan(environment, lock.wheels_for(platform, minor), python, request, old)
    if plan.dropped:
        notes.append(f"what was installed by hand for Python {old.python if old else ''} was removed with that Python")
    _begin(environment, target, plan, old)
    _install(context, uv, environment, plan)
    return _finish(environment, target, lock, platform, plan, request.mode)


@dataclass(frozen=True, slots=True)
class _Plan:
    """How the packages of a prefix are brought to what the lock says.

    Attributes:
        wheels: The wheels that it shall hold.
        python: The Python that it is made with.
        scratch: Clear the prefix first, since what is in it is not known to be whole.
        ours: The packages that are tenv's, before or after.
        foreign: Files, relative to the prefix, that are not tenv's and stay.
        dropped: Whether files that are not tenv's go, since they were for another Python.
    """

    wheels: tuple[Wheel, ...]
    python: Interpreter
    scratch: bool
    ours: Mapping[str, str]
    foreign: tuple[str, ...]
    dropped: bool


def _plan(
    environment: Environment, wheels: tuple[Wheel, ...], python: Interpreter, request: Request, old: State | None
) -> _Plan:
    """Look at what is in the prefix and decide what may stay.

    A prefix that was ready is brought up to date in place. One that was not is cleared and filled anew, all but the
    files that were there before tenv began and those of packages that are in neither lock.
    """
    ours = {**(old.packages if old else {}), **{wheel.name: wheel.version for wheel in wheels}}
    same_python = not old or old.python in ("", python.version.major_minor)
    ready = bool(old and old.status is Status.READY and discover(environment.prefix).python.exists())
    foreign: set[str] = set()
    if old and not request.exact:
        if old.status is Status.READY:
            foreign.update(environment.foreign_files(ours))
        else:
            foreign.update(old.foreign)
            foreign.update(environment.files_of(set(environment.installed()) - set(ours)))
    return _Plan(
        wheels=wheels,
        python=python,
        scratch=not (ready and same_python) or request.exact,
        ours=ours,
        foreign=tuple(sorted(foreign)) if same_python else (),
        dropped=bool(foreign) and not same_python,
    )


def _choose_python(
    uv: Uv, target: Target, lock: Lock, platform: str, wanted: str | None, old: State | None
) -> Interpreter:
    """Return the Python to use: the one asked for, the one the environment has, the host's best, or a fetched one."""
    minors = lock.python_minors(platform) or target.manifest.python_minors()
    if wanted and (Path(wanted).is_file() or "/" in wanted):
        found = uv.inspect(Path(wanted).absolute())
        if found is None or found.version.major_minor not in minors:
            have = f"is Python {found.version}" if found else "is not a working Python"
            raise UsageError(f"`--python {wanted}` {have}; the lock of {target.name} serves {', '.join(minors)}")
        return found
    if wanted and wanted not in minors:
        raise UsageError(f"`--python {wanted}`: the lock of {target.name} serves {', '.join(minors)}")
    here = [python for python in uv.interpreters(target.manifest) if python.version.major_minor in minors]
    preferred = wanted or (old.python if old and old.python in minors else "")
    if preferred:
        here = [python for python in here if python.version.major_minor == preferred]
    if here:
        return here[0]
    minor = preferred or max(minors, key=Version)
    program = uv.fetch_python(minor)
    fetched = uv.inspect(program)
    if fetched is None:
        raise EnvironmentBrokenError(f"the fetched Python {program} does not run")
    return fetched


def _begin(environment: Environment, target: Target, plan: _Plan, old: State | None) -> None:
    """Write down that the environment is being changed, and what in it is not tenv's."""
    with storage_errors(f"can't create {environment.prefix}"):
        environment.meta.mkdir(parents=True, exist_ok=True)
        (environment.meta / posix.SCRIPT).unlink(missing_ok=True)
    python = old.python if old else plan.python.version.major_minor
    state = State(Status.CREATING, target.name, packages=plan.ours, foreign=plan.foreign, python=python)
    environment.write_state(state)


def _install(context: Context, uv: Uv, environment: Environment, plan: _Plan) -> None:
    """Bring the packages of the prefix to what the lock says."""
    prefix = environment.prefix
    if plan.scratch:
        environment.wipe(plan.foreign)
        uv.make_environment(prefix, plan.python.path, prefix.name)
    program = discover(prefix).python
    gone = sorted(set(environment.installed()) & set(plan.ours) - {wheel.name for wheel in plan.wheels})
    if gone:
        uv.remove(program, gone)
    context.progress.step("downloading and installing", sum(wheel.size or 0 for wheel in plan.wheels))
    if plan.wheels:
        uv.install(program, plan.wheels, context.progress)
    installed = environment.installed()
    wrong = [wheel.name for wheel in plan.wheels if installed.get(wheel.name) != wheel.version]
    if wrong:
        raise EnvironmentBrokenError(f"{prefix}: {', '.join(wrong)} did not arrive in the version of the lock")


def _finish(environment: Environment, target: Target, lock: Lock, platform: str, plan: _Plan, mode: LockMode) -> State:
    """Assemble the toolchain, store the activation, and write last that the environment is ready."""
    toolchain = assemble(environment.prefix, platform)
    _store_activation(environment, derive(target.manifest.on(platform), toolchain, probe()))
    environment.keep_lock(lock.text)
    # Under --frozen nobody has asked whether the lock satisfies the manifest, so nothing is said of it.
    satisfied = mode is not LockMode.FROZEN or lock.manifest == target.manifest.digest()
    state = State(
        Status.READY,
        target.name,
        lock=lock.digest(),
        manifest=target.manifest.settings_digest() if satisfied else "",
        platform=platform,
        python=plan.python.version.major_minor,
        packages={wheel.name: wheel.version for wheel in plan.wheels},
        bytes=folder_size(environment.prefix),
    )
    environment.write_state(state)
    return state


def _store_activation(environment: Environment, activation: Activation) -> None:
    write_atomic(environment.meta / "activation.json", activation.to_json())
    write_atomic(environment.meta / posix.SCRIPT, posix.render_activation(activation))
