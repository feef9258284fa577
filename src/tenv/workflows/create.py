"""Create an environment from its lock, finish one that was interrupted, or find that there is nothing to do."""

import contextlib
import os
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from tenv import __version__
from tenv.activation import Activation, Archs, derive, read_activation
from tenv.environment import MARKER, Environment, State, Status
from tenv.errors import (
    ForeignFolderError,
    HostError,
    LockMissingError,
    LockStaleError,
    NetworkError,
    StorageError,
    TenvError,
    UsageError,
)
from tenv.files import digest_bytes, exclusive, folder_size, make_folder, remove_tree, write_atomic
from tenv.host.machine import current_platform, probe, sees_gpu
from tenv.lock import Lock, read_lock
from tenv.manifest import Manifest
from tenv.providers.interface import Joined
from tenv.providers.pypi import Interpreter
from tenv.rules.toolkit import check_lock
from tenv.scripts import run_scripts
from tenv.shells.interface import SHELLS
from tenv.targets import Target
from tenv.toolchain import Toolchain, discover
from tenv.versions import Version, same_release
from tenv.workflows.context import Context
from tenv.workflows.facts import user_facts
from tenv.workflows.install import Plan, Wanted, begin, install, make_plan, settle
from tenv.workflows.integrity import find_faults, note_made
from tenv.workflows.lock import check_target_lock, lock_target
from tenv.workflows.packages import leaving_links, stage
from tenv.workflows.python import choose_python
from tenv.workflows.system import Taken, retime, take_from_machine, with_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenv.rules.interface import Finding
    from tenv.workflows.archives import Gathering
    from tenv.workflows.precheck import Surroundings

__all__ = ["Created", "LockMode", "Request", "create"]

_ACTIVATION = "activation.json"


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
    target = context.places.find(request.target)
    if request.lock_file is not None:
        target = replace(target, lock_file=request.lock_file, lock_home=request.lock_file)
    environment = context.environment(target.name, request.prefix)
    _check_prefix(environment.prefix)
    state = environment.state()
    if state and state.status is not Status.BROKEN and state.target != target.name:
        raise ForeignFolderError(
            f"{environment.prefix} is an environment of `{state.target}`",
            hint="name another folder with `--prefix`, or remove that environment first",
        )
    notes: list[str] = []
    changed = False
    taken = _take(context, target.manifest, environment)
    findings: tuple[Finding, ...] = ()
    if state is None or not taken.same or not _is_current(target, request, environment, state):
        _check_platform(target.manifest)
        target, findings = _check_and_lock(context, target, request, tell)
        with _hold(context, request, environment):
            state = environment.state()  # another process may have made it while we waited
            if state is None or not taken.same or not _is_current(target, request, environment, state):
                state, changed = _make(context, target, request, environment, taken, notes), True
    elif taken.touched:
        with _hold(context, request, environment):
            retime(environment, target.name)
    seconds = time.monotonic() - start
    return Created(target.name, environment.prefix, state, target.lock_file, changed, seconds, tuple(notes), findings)


def _take(context: Context, manifest: Manifest, environment: Environment) -> Taken:
    """Choose what the target takes from this machine, before anything is written; what it lacks ends the command."""
    here = manifest.on(current_platform())
    if here.system:
        _check_platform(manifest)
    return take_from_machine(context, here, environment)


def _is_current(target: Target, request: Request, environment: Environment, state: State) -> bool:
    """Tell whether an environment already is what is asked for, by digests and names alone."""
    if state.status is not Status.READY or request.exact or request.repair or state.platform != current_platform():
        return False
    if state.written_by != __version__:  # another tenv may lay out the toolkit or the activation in another way
        return False
    try:
        lock = digest_bytes(target.lock_file.read_bytes())
    except OSError:
        return False
    if state.lock != lock or (
        request.mode is not LockMode.FROZEN and state.manifest != target.manifest.settings_digest()
    ):
        return False
    if not _has_python(environment, request.python, state.python):
        return False
    installed = environment.installed()
    there = all(same_release(installed.get(name, ""), version) for name, (version, _) in state.packages.items())
    notes = (_ACTIVATION, *(shell.SCRIPT for shell in SHELLS))
    return (
        there
        and environment.has_conda(state.conda)
        and environment.has_archives(state.archives)
        and (not state.python or discover(environment.prefix).python.exists())
        and all((environment.meta / note).is_file() for note in notes)
    )


def _has_python(environment: Environment, wanted: str | None, minor: str = "") -> bool:
    """Tell whether a prefix has the Python that is asked for: a minor, or a program by its path."""
    if not wanted:
        return True
    if "/" not in wanted:
        return not minor or wanted == minor
    return os.path.realpath(discover(environment.prefix).python) == os.path.realpath(wanted)


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
    from tenv.workflows import precheck  # noqa: PLC0415 (late: 30 ms that a create with nothing to do can't spare)

    stale = None if request.mode is LockMode.FROZEN else _staleness(target)
    # A lock that somebody hands over is used or refused, never written.
    if stale and (request.mode is LockMode.LOCKED or request.lock_file is not None):
        raise stale
    around = (request.around or precheck.look_around(context)) if request.check else None
    findings = precheck.require_build(target, around, locked=not stale) if around else ()
    tell(findings)
    if stale:
        locked = lock_target(context, target)
        context.progress.say(f"{locked.path}: {'; '.join(locked.differences)}: locked anew")
        target = replace(target, lock_file=locked.path)
        known, findings = findings, precheck.require_build(target, around, locked=True) if around else ()
        tell([finding for finding in findings if finding not in known])
    return target, findings


def _staleness(target: Target) -> TenvError | None:
    """Return why there is no lock that may be used as it is; None when there is one."""
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
    context: Context, target: Target, request: Request, environment: Environment, taken: Taken, notes: list[str]
) -> State:
    """Install the files of the lock, then assemble, activate and mark the environment as ready."""
    environment.check_ours()
    lock = read_lock(target.lock_file, target.name)
    platform = current_platform()
    old = environment.state()
    wanted = _wanted(context, target, lock, platform, request.python, old, environment)
    _note_headers(wanted, notes)
    other_python = not _has_python(environment, request.python)
    plan = make_plan(environment, wanted, old, exact=request.exact, other_python=other_python)
    damaged = find_faults(environment, old).owners if request.repair and old else ()
    plan = plan.with_damaged(damaged)
    from tenv.workflows.archives import gather  # noqa: PLC0415 (late: 24 ms, not for an environment that is there)

    joined = Joined(context.progress)
    context = replace(context, progress=joined)
    archives = lock.archives.get(platform, ())
    again = [archive.name for archive in archives] if plan.scratch else damaged
    with gather(context, environment.prefix, archives, joined, again=again, thorough=request.repair) as gathering:
        plan = _change(context, target, request, environment, lock, plan, old, gathering, taken, notes)
    return _finish(context, environment, target, lock, platform, plan, request.mode, taken, notes)


def _change(
    context: Context,
    target: Target,
    request: Request,
    environment: Environment,
    lock: Lock,
    plan: Plan,
    old: State | None,
    gathering: "Gathering",
    taken: Taken,
    notes: list[str],
) -> Plan:
    """Bring what is in the prefix to what the plan says, and return the plan as it was carried out."""
    from tenv.workflows.archives import settle_archives  # noqa: PLC0415 (as above)

    if plan.links:
        staged = stage(lock, current_platform(), context.network(), context.progress)
        plan = settle(plan, staged, environment.prefix, old)
        notes += staged.notes
    if request.mode is LockMode.FROZEN:
        notes += [f"{finding.subject} {finding.message} ({finding.code})" for finding in check_lock(lock)]
    if plan.dropped:
        notes.append(f"what was installed by hand for Python {old.python if old else ''} was removed with that Python")
    notes += taken.notes()
    if old and old.status is Status.READY:  # it stays so if an archive can't be had
        gathering.wait()
    begin(environment, target.name, plan, old)
    try:
        install(context.uv(), environment, plan, context.progress)
        settle_archives(environment, gathering)
    except TenvError as error:
        _after_failure(environment, plan, old, error)
        raise
    notes += leaving_links(environment.prefix, plan.staged)
    return plan


def _wanted(
    context: Context,
    target: Target,
    lock: Lock,
    platform: str,
    python: str | None,
    old: State | None,
    environment: Environment,
) -> Wanted:
    """Return what the lock holds for this host: for a Python that is one of its conda packages, or for one to choose.

    Raises:
        UsageError: `--python` names a Python that the lock does not serve.
    """
    conda = lock.conda.get(platform, ())
    own = next((package for package in conda if package.name == "python"), None)
    if own:
        version = Version(own.version)
        if python and python != version.major_minor:
            raise UsageError(f"`--python {python}`: the lock of {target.name} has its own Python {version}")
        program = discover(environment.prefix).python
        return Wanted(lock.wheels_for(platform, version.major_minor), conda, Interpreter(program, version, True), True)
    if not (target.manifest.python or lock.python_minors(platform)):
        return Wanted((), conda)
    found = choose_python(context.uv(), target, lock, platform, python, old)
    return Wanted(lock.wheels_for(platform, found.version.major_minor), conda, found)


def _note_headers(wanted: Wanted, notes: list[str]) -> None:
    python = wanted.python
    if python and not python.headers:
        notes.append(
            f"{python.path} has no Python.h, so that PyTorch can't be built with it: "
            f"install its headers (Debian, Ubuntu: python{python.version.major_minor}-dev)"
        )


def _after_failure(environment: Environment, plan: Plan, old: State | None, error: TenvError) -> None:
    """Leave what was ready ready where it is untouched, and nothing where there was nothing."""
    if isinstance(error, NetworkError) and error.untouched and old and old.status is Status.READY:
        _store_activation(environment, read_activation(environment.meta / _ACTIVATION))
        environment.write_state(old)
    elif old is None and not plan.foreign:
        with contextlib.suppress(StorageError):  # the first error is the one to tell
            remove_tree(environment.prefix, MARKER)


def _archs(context: Context, manifest: Manifest, toolchain: Toolchain) -> Archs | None:
    """Return what to compile for where no GPU tells; None where one does, or nothing is known."""
    cuda = toolchain.cuda_version if "cuda-toolkit" in toolchain.system else manifest.requirements.cuda
    if cuda is None or sees_gpu():
        return None
    machine = "aarch64" if current_platform().endswith("aarch64") else "x86_64"
    found = user_facts(context).pytorch_build.newest_archs(cuda, machine)
    return Archs(found[0], found[1].source) if found else None


def _finish(
    context: Context,
    environment: Environment,
    target: Target,
    lock: Lock,
    platform: str,
    plan: Plan,
    mode: LockMode,
    taken: Taken,
    notes: list[str],
) -> State:
    """Assemble the toolchain, store the activation, and write last that the environment is ready."""
    from tenv.workflows.archives import homes_in, remembered  # noqa: PLC0415 (as above)

    nvidia = discover(environment.prefix).site_packages / "nvidia"
    archives = lock.archives.get(platform, ())
    parts = (*environment.folders_of(plan.packages, nvidia), *homes_in(environment.prefix, archives))
    toolchain, watches = with_machine(environment, target.name, taken, platform, parts)
    if toolchain.compat and not _is_allowed(context, target):
        toolchain = replace(toolchain, compat=None)
    manifest = target.manifest.on(platform)
    effects, unfinished = run_scripts(environment.prefix) if toolchain.conda else ((), ())
    notes += unfinished
    activation = derive(manifest, toolchain, probe(), _archs(context, manifest, toolchain), effects)
    _store_activation(environment, replace(activation, watches=watches))
    environment.keep_lock(lock.text, target.lock_file)
    note_made(environment)
    # Under --frozen nobody has asked whether the lock satisfies the manifest, so nothing is said of it.
    satisfied = mode is not LockMode.FROZEN or lock.manifest == target.manifest.digest()
    state = State(
        Status.READY,
        target.name,
        lock=lock.digest(),
        manifest=target.manifest.settings_digest() if satisfied else "",
        platform=platform,
        python=plan.wanted.minor,
        packages=plan.packages,
        conda=plan.conda,
        archives=remembered(archives),
        bytes=folder_size(environment.prefix),
    )
    environment.write_state(state)
    return state


def _is_allowed(context: Context, target: Target) -> bool:
    """Tell whether programs may be run with cuda-compat here: where the driver is too old and its GPUs are such."""
    from tenv.rules.driver import Verdict  # noqa: PLC0415 (late: few environments have it)
    from tenv.workflows.check_driver import check  # noqa: PLC0415

    judged = check(context, target.name)
    return any(row.verdict.verdict is Verdict.FORWARD for row in judged.rows)


def _store_activation(environment: Environment, activation: Activation) -> None:
    write_atomic(environment.meta / _ACTIVATION, activation.to_json())
    for shell in SHELLS:
        write_atomic(environment.meta / shell.SCRIPT, shell.render_activation(activation))
