"""Makes the environment of a target: installs the files of its lock, assembles, activates, marks it as ready."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tenv.activation.changes import ACTIVATION, Activation, read_activation
from tenv.activation.conda_scripts import run_scripts
from tenv.activation.variables import derive
from tenv.checks.rules.toolkit import check_lock
from tenv.core.errors import NetworkError, StorageError, TenvError, UnsafePackageError
from tenv.core.files import flush, remove_tree, write_atomic
from tenv.core.folder_size import MeasuredFolder, folder_size
from tenv.core.prefix import MARKER, clear
from tenv.core.progress import Joined
from tenv.core.threads import ahead
from tenv.environment.lock_note import drop_note
from tenv.environment.made_files import note_made, store_scripts
from tenv.environment.state import Environment, State, Status
from tenv.environment.trust import Reason, needed_names
from tenv.install.architectures import chosen_archs, load_tables
from tenv.install.creating import write_creating
from tenv.install.creation import Creation
from tenv.install.plan import make_plan
from tenv.install.steps import Step, run_steps
from tenv.sources.owners import record_files
from tenv.toolchain.cuda_folder import assemble, assemble_beside

__all__ = ["STEPS", "make", "notes"]


def make(job: Creation) -> None:
    """Make an environment; the caller holds the lock on its folder.

    Raises:
        TenvError: A step failed. The environment is then unchanged, or its state is not `ready`.
    """
    if job.fault is None:
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
    if not job.begun:
        job.plan = make_plan(job)


def _stage(job: Creation) -> None:
    """Fetch all files that can be fetched before the prefix changes."""
    for work in job.works:
        work.begin()
    in_place = not job.plan.scratch
    replaced = {name for work in job.works for name in work.stage()}
    if in_place and job.plan.scratch:  # what is fetched now may replace files of another source
        for work in job.works:
            work.begin()
    if replaced:
        kept = tuple(name for name in job.plan.unmanaged if name not in replaced)
        job.plan = replace(job.plan, unmanaged=kept)
    if job.ready:  # it stays ready if a file can't be fetched
        for work in job.works:
            work.wait()


def _install(job: Creation) -> None:
    """Change the prefix as planned."""
    begun, job.begun = job.begun, False
    if not begun:
        write_creating(job)
    try:
        if job.plan.scratch and not begun:
            clear(job.prefix, job.plan.unmanaged)
        if begun:
            load_tables(job)  # while an installer works
        for work in job.works:
            work.prepare()
        for work in job.works:
            work.put()
    except TenvError as error:
        _after_failure(job, error)
        raise


def _after_failure(job: Creation, error: TenvError) -> None:
    """Keep an untouched environment ready, and remove a prefix that did not exist before."""
    environment = job.environment
    if isinstance(error, UnsafePackageError):  # a package may have put a state and an id of its own there
        write_creating(job)
    if isinstance(error, NetworkError) and error.untouched and job.ready:
        _store_activation(environment, read_activation(environment.meta / ACTIVATION))
        flush(environment.prefix)
        environment.write_state(job.ready)
    elif job.old is None and not job.plan.unmanaged:
        # The first error is the one to report.
        with contextlib.suppress(StorageError), job.context.registry().forgetting(environment.prefix):
            remove_tree(environment.prefix, MARKER)


def _assemble(job: Creation) -> None:
    """Make one toolchain of the installed files and the system tools."""
    parts = tuple(part for work in job.works for part in work.toolkit_parts())
    if any(work.brings_toolkit() for work in job.works):
        toolchain = assemble_beside(job.prefix, parts, job.plan.unmanaged)
    else:
        toolchain = assemble(job.prefix, job.platform, parts, job.plan.unmanaged)
    for work in job.works:
        toolchain = work.fit(toolchain)
    if toolchain.compat and not _may_use_compat(job):
        toolchain = replace(toolchain, compat=None)
    job.toolchain = toolchain


def _may_use_compat(job: Creation) -> bool:
    from tenv.checks.before_create import allows_compat  # late: few environments hold it

    return allows_compat(job.target, job.platform, job.around)


def _activate(job: Creation) -> None:
    """Store the activation of the environment."""
    effects, job.unfinished = run_scripts(job.prefix) if job.toolchain.conda else ((), ())
    activation = derive(
        job.manifest, job.toolchain, job.machine, chosen_archs(job), effects, job.context.environ.get("HOME", "")
    )
    watches = tuple(watch for work in job.works for watch in work.watches())
    _store_activation(job.environment, replace(activation, watches=watches))


def _takes_toolkit(job: Creation) -> bool:
    return "cuda-toolkit" in job.toolchain.system and job.toolchain.cuda_version is not None


def _probe(job: Creation) -> None:
    """Run CMake's FindCUDAToolkit on a toolkit of the system, and report the parts that it does not find."""
    from tenv.checks.rules.whole_toolkit import cmake_targets  # late: only for a toolkit of the system
    from tenv.toolchain import smoke_tests

    environ = read_activation(job.environment.meta / ACTIVATION).apply(job.context.environ)
    cuda = job.toolchain.cuda_version
    parts = cmake_targets(job.manifest, job.context.facts(), cuda, environ) if cuda else ()
    probe = smoke_tests.toolkit_probe(job.toolchain, parts)
    outcome = smoke_tests.run(probe, environ) if probe else None
    if outcome and not outcome.ok:
        found = re.search(r"FindCUDAToolkit finds no .*?(?=\n\s*\n|\nended|$)", outcome.log, re.DOTALL)
        why = " ".join(found.group().split()) if found else "`tenv verify` shows its output"
        job.unfinished = (*job.unfinished, f"CMake can't configure with {job.toolchain.cuda}: {why}")


def _store_activation(environment: Environment, activation: Activation) -> None:
    write_atomic(environment.meta / ACTIVATION, activation.to_json(), within=environment.prefix)
    store_scripts(environment, activation)


def _finish(job: Creation) -> None:
    """Record the installed and made files, then write the state `ready`."""
    environment = job.environment
    environment.keep_lock(job.lock.text, job.target.lock_file)
    records = record_files(job.prefix, job.plan.wanted)
    made = note_made(environment, job.plan.minor, records, job.plan.unmanaged)
    drop_note(environment)
    flushed = ahead(lambda: _flush(job))  # while the disk works, the files are counted
    job.state = State(
        Status.READY,
        job.target.name,
        lock=job.lock.digest(),
        manifest="" if job.kept else job.target.manifest.settings_digest(),
        platform=job.platform,
        python=job.plan.minor,
        owned=job.plan.wanted,
        bytes=folder_size(environment.prefix, apart=_measured(job), known=_linked(job)),
        features=job.features,
        prefix=str(environment.prefix),
        made=made,
    )
    flushed()
    job.context.registry().mark(environment.prefix, needed_names(environment.prefix, job.plan.minor))
    environment.write_state(job.state)


def _flush(job: Creation) -> None:
    """Wait until the disk has all files; what it could not take is reported once, by the first of two waits."""
    if job.flushing:
        job.flushing()
    flush(job.prefix)


def _measured(job: Creation) -> MeasuredFolder | None:
    """Return the folder of Python packages as it was measured, unless an archive or a script may have changed it."""
    return job.measured if _is_as_installed(job) else None


def _linked(job: Creation) -> Mapping[str, int]:
    """Return the sizes of the files that were linked early, unless an archive or a script may have changed one."""
    return job.linked if _is_as_installed(job) else {}


def _is_as_installed(job: Creation) -> bool:
    scripts = job.prefix / "etc" / "conda" / "activate.d"
    return job.plan.changed <= {"conda", "wheels"} and not scripts.exists()


STEPS = (
    Step("planning", _plan),
    Step("staging", _stage),
    Step("installing", _install),
    Step("assembling", _assemble),
    Step("activating", _activate),
    Step("probing", _probe, _takes_toolkit),
    Step("finishing", _finish),
)
"""The steps after locking."""


def notes(job: Creation) -> Iterator[str]:
    """Yield notes for the user about the installed files."""
    python = job.plan.python
    if python and not python.headers:
        yield (
            f"{python.path} has no Python.h, so PyTorch can't be built with it: "
            f"`apt install python{python.version.major_minor}-dev` installs it on Debian and Ubuntu"
        )
    if job.frozen:
        yield from (f"{found.subject} {found.message} ({found.code})" for found in check_lock(job.lock))
    if job.fault and job.fault.reason is Reason.MOVED:
        yield (
            f"{job.fault.message}: its packages were put there again for the new path, and your own files stayed; "
            "scripts among them may name the old path"
        )
    registry = job.context.registry()
    if not registry.is_marked(job.prefix) and not registry.is_safe(job.prefix):
        yield (
            f"tenv can't write its mark to {registry.folder}, so no command will take this environment for yours; "
            f"set TENV_SAFE_FOLDERS={job.prefix} to use it"
        )
    if job.aside:
        yield f"what was there is in {job.aside}; remove it when nothing in it is needed"
    if job.plan.dropped:
        before = job.old.python if job.old else ""
        yield f"unmanaged packages for Python {before} were removed with that Python"
    for work in job.works:
        yield from work.notes()
    yield from job.unfinished
