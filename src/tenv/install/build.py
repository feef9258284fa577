"""Make the environment of a target: install the files of its lock, then assemble, activate and mark it as ready."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tenv.activation.changes import ACTIVATION, Activation, Watch, read_activation
from tenv.activation.conda_scripts import run_scripts
from tenv.activation.shells.interface import SHELLS
from tenv.activation.variables import Archs, derive
from tenv.checks.rules.toolkit import check_lock
from tenv.core.errors import NetworkError, StorageError, TenvError, UsageError
from tenv.core.files import folder_size, remove_tree, write_atomic
from tenv.core.prefix import MARKER
from tenv.core.progress import Joined
from tenv.core.versions import Version
from tenv.environment.installed_files import Wheels
from tenv.environment.made_files import find_faults, note_made
from tenv.environment.state import Environment, State, Status
from tenv.host.machine import current_platform, probe, sees_gpu
from tenv.install.archives import Gathering, gather, homes_in, remembered, settle_archives
from tenv.install.conda_staging import leaving_links, path_notes, stage
from tenv.install.packages import Plan, Wanted, begin, install, make_plan, settle
from tenv.install.python import choose_python, has_python
from tenv.install.system_tools import Taken, with_machine
from tenv.locks.lock import Archive, CondaPackage, Lock
from tenv.project.context import Context
from tenv.project.user_facts import user_facts
from tenv.sources.wheels.interpreters import Interpreter
from tenv.targets.search import Target
from tenv.toolchain.discover import Toolchain, discover

if TYPE_CHECKING:
    from tenv.checks.before_create import Surroundings

__all__ = ["Job", "Made", "make"]


@dataclass(frozen=True, slots=True)
class Job:
    """An environment to make, and what every step of that needs.

    Attributes:
        context: What every verb is given.
        target: The target.
        environment: Where to.
        taken: What it takes from this machine.
        lock: What it shall hold.
        old: What is known about what is there; None when nothing is.
        python: A Python minor or program; None to choose.
        exact: Remove what tenv did not install.
        repair: Look at every file, and fetch and install again what is not as it was put there.
        frozen: Nobody has asked whether the lock satisfies the manifest.
        around: The machine to judge by; None for this one.
    """

    context: Context
    target: Target
    environment: Environment
    taken: Taken
    lock: Lock
    old: State | None
    python: str | None = None
    exact: bool = False
    repair: bool = False
    frozen: bool = False
    around: "Surroundings | None" = None

    @property
    def conda(self) -> tuple[CondaPackage, ...]:
        """The conda packages of the lock for this machine."""
        return self.lock.conda.get(current_platform(), ())

    @property
    def archives(self) -> tuple[Archive, ...]:
        """The archives of the lock for this machine."""
        return self.lock.archives.get(current_platform(), ())

    @property
    def ready(self) -> State | None:
        """The state of an environment that can be used until it is changed; None when there is none."""
        return self.old if self.old and self.old.status is Status.READY else None


@dataclass(frozen=True, slots=True)
class Made:
    """An environment that is ready.

    Attributes:
        state: Its state.
        notes: What a person should know.
    """

    state: State
    notes: tuple[str, ...]


def make(job: Job) -> Made:
    """Make an environment; the caller holds its folder.

    Raises:
        TenvError: Anything on the way went wrong; the environment is then as it was, or marked as not ready.
    """
    job.environment.check_ours()
    joined = Joined(job.context.progress)
    job = replace(job, context=replace(job.context, progress=joined))
    damaged = find_faults(job.environment, job.old).owners if job.repair and job.old else ()
    plan = _plan(job).with_damaged(damaged)
    prefix, afresh = job.environment.prefix, plan.scratch
    with gather(
        job.context, prefix, job.archives, joined, afresh=afresh, damaged=damaged, thorough=job.repair
    ) as gathering:
        plan = _stage(job, plan)
        if job.ready:  # it stays so if an archive can't be had
            gathering.wait()
        _install(job, plan, gathering)
    toolchain, watches = _assemble(job, plan)
    unfinished = _activate(job, toolchain, watches)
    return Made(_mark_ready(job, plan), (*_notes(job, plan), *unfinished))


def _plan(job: Job) -> Plan:
    """Decide what of the prefix may stay, before anything is fetched."""
    other_python = not has_python(job.environment, job.python)
    return make_plan(job.environment, _wanted(job), job.old, exact=job.exact, other_python=other_python)


def _wanted(job: Job) -> Wanted:
    """Return what the lock holds for this host: for a Python that is one of its conda packages, or for one to choose.

    Raises:
        UsageError: `--python` names a Python that the lock does not serve.
    """
    lock, platform = job.lock, current_platform()
    own = next((package for package in job.conda if package.name == "python"), None)
    if own:
        version = Version(own.version)
        if job.python and job.python != version.major_minor:
            raise UsageError(f"`--python {job.python}`: the lock of {job.target.name} has its own Python {version}")
        python = Interpreter(discover(job.environment.prefix).python, version, headers=True)
        return Wanted(lock.wheels_for(platform, version.major_minor), job.conda, python, own_python=True)
    if not (job.target.manifest.python or lock.python_minors(platform)):
        return Wanted((), job.conda)
    found = choose_python(job.context.uv(), job.target, lock, platform, job.python, job.old)
    return Wanted(lock.wheels_for(platform, found.version.major_minor), job.conda, found)


def _stage(job: Job, plan: Plan) -> Plan:
    """Have the conda packages at hand, where any is to be linked, and see that none is in the way of other files."""
    if not plan.links:
        return plan
    context = job.context
    staged = stage(job.lock, current_platform(), context.network(), context.progress, thorough=plan.thorough)
    return settle(plan, staged, job.environment, job.old)


def _install(job: Job, plan: Plan, gathering: Gathering) -> None:
    """Bring what is in the prefix to what the plan says."""
    begin(job.environment, job.target.name, plan, job.old)
    try:
        install(job.context.uv(), job.environment, plan, job.context.progress)
        settle_archives(job.environment, gathering)
    except TenvError as error:
        _after_failure(job, plan, error)
        raise


def _after_failure(job: Job, plan: Plan, error: TenvError) -> None:
    """Leave what was ready ready where it is untouched, and nothing where there was nothing."""
    environment = job.environment
    if isinstance(error, NetworkError) and error.untouched and job.ready:
        _store_activation(environment, read_activation(environment.meta / ACTIVATION))
        environment.write_state(job.ready)
    elif job.old is None and not plan.foreign:
        with contextlib.suppress(StorageError):  # the first error is the one to tell
            remove_tree(environment.prefix, MARKER)


def _assemble(job: Job, plan: Plan) -> tuple[Toolchain, tuple[Watch, ...]]:
    """Make one toolchain of what was installed and what is taken from the machine."""
    environment = job.environment
    nvidia = discover(environment.prefix).site_packages / "nvidia"
    parts = (*Wheels(environment.prefix).folders(plan.packages, nvidia), *homes_in(environment.prefix, job.archives))
    toolchain, watches = with_machine(environment, job.target.name, job.taken, current_platform(), parts)
    if toolchain.compat and not _may_use_compat(job):
        toolchain = replace(toolchain, compat=None)
    return toolchain, watches


def _may_use_compat(job: Job) -> bool:
    from tenv.checks.cuda_compat import is_allowed  # noqa: PLC0415 (late: few environments have it)

    return is_allowed(job.context, job.target, job.around)


def _activate(job: Job, toolchain: Toolchain, watches: tuple[Watch, ...]) -> Sequence[str]:
    """Store what activating the environment changes; return a sentence for each script that did not end."""
    manifest = job.target.manifest.on(current_platform())
    effects, unfinished = run_scripts(job.environment.prefix) if toolchain.conda else ((), ())
    activation = derive(manifest, toolchain, probe(), _archs(job, toolchain), effects)
    _store_activation(job.environment, replace(activation, watches=watches))
    return unfinished


def _archs(job: Job, toolchain: Toolchain) -> Archs | None:
    """Return what to compile for where no GPU tells; None where one does, or nothing is known."""
    platform = current_platform()
    wanted = job.target.manifest.on(platform).requirements.cuda
    cuda = toolchain.cuda_version if "cuda-toolkit" in toolchain.system else wanted
    if cuda is None or sees_gpu():
        return None
    machine = "aarch64" if platform.endswith("aarch64") else "x86_64"
    found = user_facts(job.context).pytorch_build.newest_archs(cuda, machine)
    return Archs(found[0], found[1].source) if found else None


def _store_activation(environment: Environment, activation: Activation) -> None:
    write_atomic(environment.meta / ACTIVATION, activation.to_json())
    for shell in SHELLS:
        write_atomic(environment.meta / shell.SCRIPT, shell.render_activation(activation))


def _mark_ready(job: Job, plan: Plan) -> State:
    """Write down what was installed and made, and last that the environment is ready."""
    environment = job.environment
    environment.keep_lock(job.lock.text, job.target.lock_file)
    note_made(environment)
    # Of a lock that nobody has held against the manifest nothing is said.
    satisfied = not job.frozen or job.lock.manifest == job.target.manifest.digest()
    state = State(
        Status.READY,
        job.target.name,
        lock=job.lock.digest(),
        manifest=job.target.manifest.settings_digest() if satisfied else "",
        platform=current_platform(),
        python=plan.wanted.minor,
        packages=plan.packages,
        conda=plan.conda,
        archives=remembered(job.archives),
        bytes=folder_size(environment.prefix),
    )
    environment.write_state(state)
    return state


def _notes(job: Job, plan: Plan) -> Iterator[str]:
    """Yield what a person should know of what was installed."""
    python = plan.wanted.python
    if python and not python.headers:
        yield (
            f"{python.path} has no Python.h, so that PyTorch can't be built with it: "
            f"install its headers (Debian, Ubuntu: python{python.version.major_minor}-dev)"
        )
    yield from plan.staged.notes
    yield from path_notes(job.environment.prefix, plan.staged)
    if job.frozen:
        yield from (f"{found.subject} {found.message} ({found.code})" for found in check_lock(job.lock))
    if plan.dropped:
        before = job.old.python if job.old else ""
        yield f"what was installed by hand for Python {before} was removed with that Python"
    yield from job.taken.notes()
    yield from leaving_links(job.environment.prefix, plan.staged)
