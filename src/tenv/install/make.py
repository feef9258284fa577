"""Makes the environment of a target in named steps, in one order: check, lock, plan, stage, install, finish.

Progress shows the name of the running step, and an error names the step that failed.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tenv.activation.changes import ACTIVATION, Activation, read_activation
from tenv.activation.conda_scripts import run_scripts
from tenv.activation.shells.interface import STORED
from tenv.activation.variables import derive
from tenv.checks.lock_verdict import judge_lock
from tenv.checks.rules.resources import UNPACKED
from tenv.checks.rules.toolkit import check_lock
from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBrokenError, NetworkError, StorageError, TenvError, UnsafePackageError
from tenv.core.file_stamps import set_executable
from tenv.core.files import flush, folder_size, remove_tree, storage_errors, write_atomic
from tenv.core.other_users import closed_to_others
from tenv.core.prefix import CONSTRAINT, MARKER, META, clear, files_in
from tenv.core.progress import Joined
from tenv.core.size_text import format_bytes
from tenv.core.versions import Version
from tenv.environment.integrity import Defect
from tenv.environment.lock_note import drop_lock_note
from tenv.environment.made_files import note_made, store_scripts
from tenv.environment.state import Environment, State, Status, put_aside
from tenv.environment.trust import Reason, needed_names
from tenv.install.architectures import archs_beside, chosen_archs
from tenv.install.creation import Creation
from tenv.install.plan import make_plan
from tenv.sources.interface import NeededFile, sources
from tenv.sources.owners import record_files
from tenv.toolchain.cuda_folder import assemble, assemble_beside

LONG = 200 << 20
"""The bytes of a download from which it is named before it begins: 16 s at 100 Mbit/s."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step."""

    name: str
    """The name, one word."""
    do: Callable[[Creation], None]
    """Runs the step."""
    needed: Callable[[Creation], bool] = lambda _: True
    """Returns whether the step has work."""
    named: bool = True
    """Whether an error names the step; false for a step whose purpose is to find the error."""


def run_steps(job: Creation, steps: Sequence[Step]) -> None:
    """Run the steps that have work, in order; an error names its step."""
    for step in steps:
        if not step.needed(job):
            continue
        job.context.progress.phase(f"{step.name} {job.target.name}")
        try:
            step.do(job)
        except TenvError as error:
            error.step = step.name if step.named else ""
            raise


def check(job: Creation) -> None:
    """Judge the lock, and apply the rules before locking: a host that can't build must not spend the minutes.

    Raises:
        TenvError: There is no lock to install, or a rule forbids it.
    """
    request = job.request
    job.judged = judge_lock(job.target, job.lock_read, features=job.features)
    lock = job.judged.usable(job.target, frozen=request.frozen, written=request.may_lock, kept=request.kept)
    job.ask_rules(lock)
    if lock:
        job.lock = lock


@contextlib.contextmanager
def put_aside_for(job: Creation) -> Iterator[None]:
    """Put the existing environment aside while the body makes a new one; put it back if the body fails.

    The caller holds the lock on the prefix, so that after a failure the prefix is the work of the body.

    Raises:
        ForeignFolderError: The folder holds no notes of tenv.
        StorageError: It can't be renamed.
    """
    job.aside = put_aside(job.environment)
    try:
        yield
    except BaseException:
        if job.aside:
            _put_back(job)
        raise


def _put_back(job: Creation) -> None:
    """Remove the failed environment, and rename the old one to its old name, or report where it is."""
    prefix, aside, say = job.prefix, job.aside, job.context.progress.say
    assert aside is not None  # noqa: S101 (the caller has checked)
    try:
        with storage_errors(f"can't put {aside} back"):
            if (prefix / MARKER).exists():
                with job.context.registry().forgetting(prefix):
                    remove_tree(prefix, MARKER)
            elif os.path.lexists(prefix):  # it failed before it wrote the first state
                with contextlib.suppress(FileNotFoundError):
                    job.environment.meta.rmdir()
                prefix.rmdir()
            aside.rename(prefix)
    except TenvError as error:
        say(f"the environment of {prefix} is in {aside}: {error.message}")
    else:
        job.aside = None
        say(f"restored {prefix}")


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
    job.plan = make_plan(job)
    rows = [job.lock.files(source.section.key, job.platform) for source in sources()]
    long = sum(getattr(row, "size", 0) or 0 for files in rows for row in files) >= LONG
    if long and not job.context.carried:
        needs = needs_of(job)
        if sum(need.size or 0 for need in needs if not need.cached) >= LONG:
            job.context.progress.say("; ".join(download_lines(needs)))


def needs_of(job: Creation) -> tuple[NeededFile, ...]:
    """Return the files that a planned job installs."""
    return tuple(need for work in job.works for need in work.needs())


def download_lines(needs: Sequence[NeededFile], kept: str = "caches") -> Iterator[str]:
    """Yield the files and the bytes to download with their servers, those kept here, and the size on the disk."""
    new, cached = [need for need in needs if not need.cached], [need for need in needs if need.cached]
    by_server: dict[str, int] = {}
    for need in new:
        by_server[need.server] = by_server.get(need.server, 0) + (need.size or 0)
    total = sum(by_server.values())
    if new:
        of = ", ".join(f"{format_bytes(size)} from {server}" for server, size in by_server.items())
        of = of if len(by_server) == 1 else f"{format_bytes(total)} ({of})"
        yield f"to download: {len(new)} file{'s'[: len(new) != 1]}, {of}"
    if cached:
        size = sum(need.size or 0 for need in cached)
        yield f"in {kept}: {len(cached)} file{'s'[: len(cached) != 1]}, {format_bytes(size)}"
    if needs:
        # No lock has unpacked sizes, and static libraries unpack to many times their size.
        yield f"on the disk: at least {format_bytes(UNPACKED * sum(need.size or 0 for need in needs))}"


def _stage(job: Creation) -> None:
    """Fetch all files that can be fetched before the prefix changes."""
    for work in job.works:
        work.begin()
    in_place = not job.plan.scratch
    replaced = {name for work in job.works for name in work.stage()}
    if in_place and job.plan.scratch:  # newly fetched files may replace those of another source
        for work in job.works:
            work.begin()
    if replaced:
        kept = tuple(name for name in job.plan.unmanaged if name not in replaced)
        job.plan = replace(job.plan, unmanaged=kept)
    if job.ready:  # it stays ready if a file can't be fetched
        for work in job.works:
            work.wait()


def _build(job: Creation) -> None:
    """Compile packages against the target's torch, in a second environment."""
    if job.builder is None:
        names = ", ".join(row.name for row in job.compiled)
        raise EnvironmentBrokenError(f"{names}: only `tenv create` compiles packages against the target's torch")
    job.builder(job)


def _install(job: Creation) -> None:
    """Change the prefix as planned."""
    _clear_way(job)
    _write_creating(job)
    try:
        if job.plan.scratch:
            clear(job.prefix, job.plan.unmanaged)
        for work in job.works:
            work.prepare()
        for work in job.works:
            work.put()
        _restore_rights(job)
    except TenvError as error:
        _after_failure(job, error)
        raise


def _write_creating(job: Creation) -> None:
    """Write the state `creating`, with the unmanaged files of the prefix."""
    environment, plan, old = job.environment, job.plan, job.old
    with storage_errors(f"can't create {environment.prefix}"):
        environment.meta.mkdir(parents=True, exist_ok=True)
        environment.tidy()
    job.context.registry().mark(environment.prefix)
    python = old.python if old else plan.minor
    owned = {key: plan.ours(key) for key in plan.wanted}
    environment.write_state(
        State(
            Status.CREATING,
            job.target.name,
            owned=owned,
            foreign=plan.unmanaged,
            python=python,
            features=job.features,
            prefix=str(environment.prefix),
        )
    )
    with storage_errors(f"can't create {environment.prefix}"):
        for shell in STORED:  # only now: after a loss of power no ready environment lacks one
            (environment.meta / shell.SCRIPT).unlink(missing_ok=True)


def _clear_way(job: Creation) -> None:
    """Remove or rename the paths that would keep the damaged ones from being installed again.

    A folder in the place of a file, and a file in the place of a folder, are renamed with the files of the user in
    them; an empty folder or a link is removed. So are damaged notes of tenv, which are written again.
    """
    prefix, moved = job.prefix, dict[str, Path]()
    for name, defect in job.plan.faults.defects.items():
        path = prefix / name
        with storage_errors(f"can't remove {path}"):
            if defect is Defect.KIND and path.is_dir() and not path.is_symlink() and not any(files_in(path)):
                shutil.rmtree(path)
            elif defect is Defect.KIND and not path.is_symlink() and os.path.lexists(path):
                moved[name] = aside = _put_aside(prefix, path)
                job.context.progress.say(f"{name} is in the way of a file of tenv: it is {aside.name} now")
            elif defect is Defect.KIND or (defect is Defect.CONTENT and name.startswith(f"{META}/")):
                path.unlink(missing_ok=True)
    kept = [name for name in job.plan.unmanaged if not any(name == old or name.startswith(f"{old}/") for old in moved)]
    for aside in moved.values():
        kept += [f"{aside.name}/{name}" for name in files_in(aside)] if aside.is_dir() else [aside.name]
    job.plan = replace(job.plan, unmanaged=tuple(kept))


def _put_aside(prefix: Path, path: Path) -> Path:
    """Rename a path to a free name in the prefix itself, and return that: installers remove folders of packages."""
    number = 1
    while os.path.lexists(aside := prefix / f"{path.name}.aside-{number}"):
        number += 1
    return path.rename(aside)


def _restore_rights(job: Creation) -> None:
    """Make files executable, or no longer, as they were installed."""
    for name, executable in job.plan.faults.programs.items():
        path = job.prefix / name
        with storage_errors(f"can't change the rights of {path}"), contextlib.suppress(FileNotFoundError):
            set_executable(path, executable=executable)


def _after_failure(job: Creation, error: TenvError) -> None:
    """Keep an untouched environment ready, and remove a prefix that did not exist before."""
    environment = job.environment
    if isinstance(error, UnsafePackageError):  # a package may have put a state and an id of its own there
        _write_creating(job)
    if isinstance(error, NetworkError) and error.untouched and job.ready:
        with contextlib.suppress(EnvironmentBrokenError):  # with a damaged activation, it is not ready
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
    if job.manifest.beside:
        from tenv.install.programs_beside import link_programs  # late: few targets are beside another environment

        link_programs(toolchain)
    job.toolchain = toolchain


def _may_use_compat(job: Creation) -> bool:
    from tenv.checks.before_create import allows_compat  # late: few environments hold it

    return allows_compat(job.target, job.platform, job.around)


def _activate(job: Creation) -> None:
    """Store the activation of the environment."""
    effects, job.unfinished = run_scripts(job.prefix) if job.toolchain.conda else ((), ())
    home, beside = job.context.environ.get("HOME", ""), job.beside
    archs = archs_beside(job, beside) if beside else chosen_archs(job)
    activation = derive(job.manifest, job.toolchain, job.machine, archs, effects, home, torch=beside)
    watches = tuple(watch for work in job.works for watch in work.watches())
    if not (job.prefix / CONSTRAINT).exists():  # uv refuses a constraint that is not there
        write_atomic(job.prefix / CONSTRAINT, "", within=job.prefix)
    _store_activation(job.environment, replace(activation, watches=watches))


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
    renewed = job.plan.scratch or job.plan.own_python
    made = note_made(environment, job.plan.minor, records, job.plan.unmanaged, renewed=renewed)
    drop_lock_note(environment)
    job.state = State(
        Status.READY,
        job.target.name,
        lock=job.lock.digest(),
        manifest="" if job.request.kept else job.target.manifest.settings_digest(),
        platform=job.platform,
        python=job.plan.minor,
        owned=job.plan.wanted,
        bytes=folder_size(environment.prefix),
        features=job.features,
        prefix=str(environment.prefix),
        made=made,
        compiled=job.plan.compiled,
    )
    flush(environment.prefix)
    job.context.registry().mark(environment.prefix, needed_names(environment.prefix, job.plan.minor))
    environment.write_state(job.state)


STEPS = (
    Step("planning", _plan),
    Step("staging", _stage),
    Step("building", _build, lambda job: bool(job.compiled)),
    Step("installing", _install),
    Step("assembling", _assemble),
    Step("activating", _activate),
    Step(
        "probing", _probe, lambda job: "cuda-toolkit" in job.toolchain.system and job.toolchain.cuda_version is not None
    ),
    Step("finishing", _finish),
)
"""The steps after locking."""


_SYSTEM = Path("/usr/bin")


def _open_python(job: Creation) -> str:
    """Return the option that takes a Python of the system which the lock serves; empty without one."""
    minors = job.lock.python_minors(job.platform) or job.target.manifest.python_minors()
    programs = [_SYSTEM / f"python{minor}" for minor in sorted(minors, key=Version, reverse=True)]
    found = next((program for program in programs if program.is_file()), None)
    return f": `--python {found}` takes one that they have" if found else ""


def notes(job: Creation) -> Iterator[str]:
    """Yield notes for the user about the installed files."""
    python = job.plan.python
    if python and not python.headers and not job.manifest.beside:
        yield (
            f"{python.path} has no Python.h, so PyTorch can't be built with it: "
            f"`apt install python{python.version.major_minor}-dev` installs it on Debian and Ubuntu"
        )
    if python and not job.plan.own_python and (folder := closed_to_others(python.path, job.prefix)):
        yield (
            f"{python.path}, the Python of this environment, lies in {folder}, which other users can't enter"
            + _open_python(job)
        )
    if job.request.frozen:
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
        yield f"the old environment is in {job.aside}; remove it when nothing in it is needed"
    if job.plan.dropped:
        before = job.old.python if job.old else ""
        yield f"unmanaged packages for Python {before} were removed with that Python"
    for work in job.works:
        yield from work.notes()
    yield from job.unfinished
