"""Make the environment of a target: install the files of its lock, then assemble, activate and mark it as ready."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace

from tenv.activation.changes import ACTIVATION, Activation, read_activation
from tenv.activation.conda_scripts import run_scripts
from tenv.activation.shells.interface import SHELLS
from tenv.activation.variables import Archs, derive
from tenv.checks.rules.toolkit import check_lock
from tenv.core.errors import NetworkError, StorageError, TenvError
from tenv.core.files import folder_size, remove_tree, storage_errors, write_atomic
from tenv.core.prefix import MARKER, clear
from tenv.core.progress import Joined
from tenv.environment.lock_note import drop_note
from tenv.environment.made_files import note_made, store_scripts
from tenv.environment.state import Environment, State, Status
from tenv.host.machine import sees_gpu
from tenv.install.creation import Creation
from tenv.install.plan import make_plan
from tenv.install.steps import Step, run_steps
from tenv.toolchain.cuda_folder import assemble, assemble_beside

__all__ = ["STEPS", "make", "notes"]


def make(job: Creation) -> None:
    """Make an environment; the caller holds its folder.

    Raises:
        TenvError: Anything on the way went wrong; the environment is then as it was, or marked as not ready.
    """
    job.environment.check_ours()
    watching = job.context
    job.context = replace(watching, progress=Joined(watching.progress))
    try:
        run_steps(job, STEPS)
    finally:
        for work in job.works:
            work.close()
        job.context = watching


def _plan(job: Creation) -> None:
    job.plan = make_plan(job)


def _stage(job: Creation) -> None:
    """Have all files brought that can be brought before the prefix is touched."""
    for work in job.works:
        work.begin()
    replaced = {name for work in job.works for name in work.stage()}
    if replaced:
        kept = tuple(name for name in job.plan.unmanaged if name not in replaced)
        job.plan = replace(job.plan, unmanaged=kept)
    if job.ready:  # it stays so if a file can't be had
        for work in job.works:
            work.wait()


def _install(job: Creation) -> None:
    """Bring what is in the prefix to what the plan says."""
    _begin(job)
    try:
        if job.plan.scratch:
            clear(job.prefix, job.plan.unmanaged)
        for work in job.works:
            work.prepare()
        for work in job.works:
            work.put()
    except TenvError as error:
        _after_failure(job, error)
        raise


def _begin(job: Creation) -> None:
    """Write down that the environment is being changed, and what in it is not tenv's."""
    environment, plan, old = job.environment, job.plan, job.old
    with storage_errors(f"can't create {environment.prefix}"):
        environment.meta.mkdir(parents=True, exist_ok=True)
        environment.tidy()
        for shell in SHELLS:
            (environment.meta / shell.SCRIPT).unlink(missing_ok=True)
    python = old.python if old else plan.minor
    owned = {key: plan.ours(key) for key in plan.wanted}
    environment.write_state(State(Status.CREATING, job.target.name, owned=owned, foreign=plan.unmanaged, python=python))


def _after_failure(job: Creation, error: TenvError) -> None:
    """Leave what was ready ready where it is untouched, and nothing where there was nothing."""
    environment = job.environment
    if isinstance(error, NetworkError) and error.untouched and job.ready:
        _store_activation(environment, read_activation(environment.meta / ACTIVATION))
        environment.write_state(job.ready)
    elif job.old is None and not job.plan.unmanaged:
        with contextlib.suppress(StorageError):  # the first error is the one to tell
            remove_tree(environment.prefix, MARKER)


def _assemble(job: Creation) -> None:
    """Make one toolchain of what was installed and what is taken from the machine."""
    parts = tuple(part for work in job.works for part in work.toolkit_parts())
    if any(work.brings_toolkit() for work in job.works):
        toolchain = assemble_beside(job.prefix, parts)
    else:
        toolchain = assemble(job.prefix, job.platform, parts)
    for work in job.works:
        toolchain = work.fit(toolchain)
    if toolchain.compat and not _may_use_compat(job):
        toolchain = replace(toolchain, compat=None)
    job.toolchain = toolchain


def _may_use_compat(job: Creation) -> bool:
    from tenv.checks.cuda_compat import is_allowed  # late: few environments have it

    return is_allowed(job.target, job.platform, job.around)


def _activate(job: Creation) -> None:
    """Store what activating the environment changes."""
    effects, job.unfinished = run_scripts(job.prefix) if job.toolchain.conda else ((), ())
    activation = derive(
        job.manifest, job.toolchain, job.machine, _archs(job), effects, job.context.environ.get("HOME", "")
    )
    watches = tuple(watch for work in job.works for watch in work.watches())
    _store_activation(job.environment, replace(activation, watches=watches))


def _takes_toolkit(job: Creation) -> bool:
    return "cuda-toolkit" in job.toolchain.system and job.toolchain.cuda_version is not None


def _probe(job: Creation) -> None:
    """Ask CMake for the parts of the toolkit that was taken from the machine; what it does not find is said."""
    from tenv.checks.rules.whole_toolkit import cmake_targets  # late: only where a toolkit is taken
    from tenv.toolchain import smoke_tests

    environ = read_activation(job.environment.meta / ACTIVATION).apply(job.context.environ)
    cuda = job.toolchain.cuda_version
    parts = cmake_targets(job.manifest, job.context.facts(), cuda, environ) if cuda else ()
    probe = smoke_tests.toolkit_probe(job.toolchain, parts)
    outcome = smoke_tests.run(probe, environ) if probe else None
    if outcome and not outcome.ok:
        said = re.search(r"FindCUDAToolkit finds no .*?(?=\n\s*\n|\nended|$)", outcome.log, re.DOTALL)
        why = " ".join(said.group().split()) if said else "`tenv verify` shows what it says"
        job.unfinished = (*job.unfinished, f"CMake can't configure with {job.toolchain.cuda}: {why}")


def _archs(job: Creation) -> Archs | None:
    """Return what to compile for where no GPU tells; None where one does, or nothing is known."""
    from_machine = "cuda-toolkit" in job.toolchain.system
    cuda = job.toolchain.cuda_version if from_machine else job.manifest.requirements.cuda
    if cuda is None or sees_gpu():
        return None
    machine = "aarch64" if job.platform.endswith("aarch64") else "x86_64"
    found = job.context.facts().pytorch_build.newest_archs(cuda, machine)
    return Archs(found[0], found[1].source) if found else None


def _store_activation(environment: Environment, activation: Activation) -> None:
    write_atomic(environment.meta / ACTIVATION, activation.to_json(), within=environment.prefix)
    store_scripts(environment, activation)


def _finish(job: Creation) -> None:
    """Write down what was installed and made, and last that the environment is ready."""
    environment = job.environment
    environment.keep_lock(job.lock.text, job.target.lock_file)
    note_made(environment)
    job.state = State(
        Status.READY,
        job.target.name,
        lock=job.lock.digest(),
        manifest="" if job.kept else job.target.manifest.settings_digest(),
        platform=job.platform,
        python=job.plan.minor,
        owned=job.plan.wanted,
        bytes=folder_size(environment.prefix),
    )
    drop_note(environment)
    environment.write_state(job.state)


STEPS = (
    Step("planning", _plan),
    Step("staging", _stage),
    Step("installing", _install),
    Step("assembling", _assemble),
    Step("activating", _activate),
    Step("probing", _probe, _takes_toolkit),
    Step("finishing", _finish),
)
"""What an environment is made in, once its lock is decided on."""


def notes(job: Creation) -> Iterator[str]:
    """Yield what the user may want to know of what was installed."""
    python = job.plan.python
    if python and not python.headers:
        yield (
            f"{python.path} has no Python.h, so that PyTorch can't be built with it: "
            f"install its headers (Debian, Ubuntu: python{python.version.major_minor}-dev)"
        )
    if job.frozen:
        yield from (f"{found.subject} {found.message} ({found.code})" for found in check_lock(job.lock))
    if job.plan.dropped:
        before = job.old.python if job.old else ""
        yield f"what was installed by hand for Python {before} was removed with that Python"
    for work in job.works:
        yield from work.notes()
    yield from job.unfinished
