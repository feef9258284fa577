"""Build PyTorch, or a package that compiles against it, in named steps from a checkout to its import, or plan that."""

import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tenv.audits.audited_tree import open_tree
from tenv.audits.build_note import gpu_code
from tenv.audits.library import AuditedFile, inspect
from tenv.builds.build_environ import build_environ
from tenv.builds.build_job import BuildJob, BuildRequest, BuildStepName, BuildWay, Done, StepReport, allowed
from tenv.builds.checkout_step import BUILD_FILES, check_checkout, check_target, is_pytorch
from tenv.builds.compile_step import build_commands, run_build
from tenv.builds.configure_step import check_summary, configure, configure_commands, unread_switches
from tenv.builds.estimate_step import check_estimate
from tenv.builds.extension_checkout import beside_python, is_extension
from tenv.builds.extension_plan import ARCHS
from tenv.builds.extension_steps import extension_libraries, lacking_gpu_code, look_at_torch, wants_gpu_code
from tenv.builds.hipify_step import hipify, of_rocm, would_hipify
from tenv.builds.import_step import check_import, run_canary
from tenv.builds.ninja_plan import read_log, run_of
from tenv.builds.probe_step import check_probe
from tenv.builds.report_page import write_report
from tenv.checks.rules.interface import Finding
from tenv.core.dataclass import dataclass
from tenv.core.errors import TenvError, UsageError
from tenv.core.files import exclusive, make_folder, write_atomic
from tenv.core.names import is_wheel
from tenv.environment.state import Status
from tenv.project.context import Context
from tenv.sources.system.fingerprint import read_fingerprints
from tenv.sources.system.taken import fit
from tenv.targets.search import find_places, is_foreign
from tenv.toolchain.discover import discover
from tenv.verbs.activate import find_activation, made_outside
from tenv.verbs.create import CreateRequest, create
from tenv.verbs.lock_place import mode_by_variables

Say = Callable[[StepReport], None]


@dataclass(frozen=True, slots=True)
class Built:
    """The result or the plan of a build."""

    steps: tuple[StepReport, ...]
    """The steps that were taken, in their order; the last one may have failed."""
    target: str
    """The target's name; empty if none was found."""
    prefix: str
    """Its environment."""
    checkout: Path
    """The checkout."""
    folder: str
    """The build folder."""
    torch: dict[str, Any]
    """The version and the location of the built torch."""
    commands: dict[str, list[list[str]]]
    """The commands, by the name of their step."""
    report: str = ""
    """The page with its steps and tasks; empty if none was written."""
    extension: str = ""
    """The package that is compiled against a torch; empty for PyTorch."""

    @property
    def ok(self) -> bool:
        """Whether no step failed."""
        return all(step.ok for step in self.steps)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all steps."""
        return tuple(finding for step in self.steps for finding in step.done.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the diagnosis as JSON values."""
        return {
            "target": self.target,
            "prefix": self.prefix,
            "pytorch": str(self.checkout),
            "extension": self.extension,
            "folder": self.folder,
            "steps": [step.to_json() for step in self.steps],
            "commands": self.commands,
            "torch": self.torch,
            "report": self.report,
        }


def checkout_context(context: Context, checkout: Path) -> Context:
    """Return a context in which environments are the checkout's own; targets are looked up around it as well."""
    around = find_places(checkout)
    places = tuple(dict.fromkeys((*around.places[:-2], *context.places.places)))
    return replace(context, places=replace(context.places, places=places, checkout=checkout))


_Work = Callable[[BuildJob], Done]


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of a build."""

    name: BuildStepName
    """Its name."""
    run: _Work
    """Its work."""
    planned: _Work | None = None
    """Its work in a plan that writes nothing; None for a step that such a plan leaves out."""
    applies: Callable[[BuildJob], bool] = lambda _: True
    """Whether a build takes it."""
    plans: Callable[[BuildJob], bool] = lambda _: True
    """Whether a plan that writes nothing takes it."""
    before: bool = False
    """Whether it comes before the build folder is locked."""
    estimates: bool = False
    """Whether a plan with `--configure` takes it."""


def _configures(job: BuildJob) -> bool:
    """Return whether there is a summary and a canary: of a revision of PyTorch that configures by itself."""
    return job.found.configures and not job.extension


def _converts(job: BuildJob) -> bool:
    """Return whether PyTorch's own sources are converted for ROCm first."""
    return of_rocm(job) and not job.extension


def _has_module(job: BuildJob) -> bool:
    return not job.request.only and job.found.way is not BuildWay.LIBTORCH


def _steps() -> tuple[_Step, ...]:
    """Return the steps of every build, in their order: of PyTorch and of what is compiled against a torch."""
    return (
        _Step(BuildStepName.CHECKOUT, check_checkout, check_checkout, before=True, estimates=True),
        _Step(BuildStepName.TARGET, check_target, check_target, before=True, estimates=True),
        _Step(BuildStepName.CREATE, _create, _would_create, before=True, estimates=True),
        _Step(BuildStepName.PROBE, check_probe, _would_probe, before=True, estimates=True),
        _Step(BuildStepName.HIPIFY, hipify, would_hipify, applies=_converts, plans=_converts),
        _Step(BuildStepName.CONFIGURE, configure, _would_configure, estimates=True),
        _Step(BuildStepName.SUMMARY, check_summary, applies=_configures, estimates=True),
        _Step(
            BuildStepName.ESTIMATE,
            check_estimate,
            _would_estimate,
            applies=lambda job: job.found.configures or bool(job.extension),
            estimates=True,
        ),
        _Step(BuildStepName.CANARY, run_canary, applies=_configures),
        _Step(BuildStepName.BUILD, run_build, _would_build),
        _Step(BuildStepName.IMPORT, check_import, applies=_has_module),
        _Step(BuildStepName.AUDIT, _check_gpu_code, applies=lambda job: bool(job.extension)),
    )


def build(context: Context, request: BuildRequest, say: Say) -> Built:
    """Build a checkout, up to the first step that fails.

    Args:
        context: The context of the verb.
        request: The request.
        say: Receives each step when it ends.

    Raises:
        TenvError: There is no such target or checkout, or the environment can't be made; with the step in it.
    """
    job = BuildJob(checkout_context(context, request.checkout), request)
    steps: list[StepReport] = []
    report, ended = "", False
    if _take(job, [step for step in _steps() if step.before], steps, say):
        with _hold(job):
            log = read_log(job.folder)
            try:
                _take(job, [step for step in _steps() if not step.before], steps, say)
                ended = True
            finally:
                report = write_report(job, steps, run_of(log, read_log(job.folder), 0).rows, ended=ended)
    return replace(_built(job, steps), report=report)


def plan(context: Context, request: BuildRequest, say: Say, *, configured: bool) -> Built:
    """Return the plan of a build, and write nothing; `configured` runs the steps up to the estimate.

    Raises:
        TenvError: As `build`.
    """
    job = BuildJob(checkout_context(context, request.checkout), request, dry=not configured)
    steps: list[StepReport] = []
    if not configured:
        dry = [replace(step, run=step.planned, applies=step.plans) for step in _steps() if step.planned]
        _take(job, dry, steps, say)
    elif _take(job, [step for step in _steps() if step.before], steps, say):
        with _hold(job):
            _take(job, [step for step in _steps() if step.estimates and not step.before], steps, say)
    return _built(job, steps)


def _hold(job: BuildJob) -> AbstractContextManager[None]:
    """Lock the build folder, since two builds in one folder would overwrite each other's objects."""
    make_folder(job.folder.parent)
    ignore = job.checkout / ".tenv" / ".gitignore"
    if not ignore.exists():
        make_folder(ignore.parent)
        write_atomic(ignore, "*\n")
    return exclusive(job.notes, f"tenv build {job.target.name}", job.context.progress.say)


def _take(job: BuildJob, steps: Sequence[_Step], taken: list[StepReport], say: Say) -> bool:
    """Run steps in order; return whether none failed."""
    for step in steps:
        name = step.name
        if not step.applies(job):
            continue
        job.context.progress.phase(name.value)
        start = time.monotonic()
        try:
            done = step.run(job)
        except TenvError as error:
            error.step = error.step if name is BuildStepName.CREATE and error.step else name.value
            error.data = error.data or {"steps": [*(step.to_json() for step in taken), _raised(name, start, error)]}
            raise
        findings = allowed(list(done.findings), job.request.allow)
        report = StepReport(name, replace(done, findings=tuple(findings)), time.monotonic() - start)
        taken.append(report)
        say(report)
        if not report.ok:
            return False
    return True


def _raised(name: BuildStepName, start: float, error: TenvError) -> dict[str, Any]:
    return {
        "name": name.value,
        "ok": False,
        "seconds": round(time.monotonic() - start, 3),
        "findings": list(error.findings),
        "log": "",
        "facts": {"error": error.code},
    }


def _built(job: BuildJob, steps: Sequence[StepReport]) -> Built:
    known = hasattr(job, "target")
    commands: dict[str, list[list[str]]] = {}
    if job.toolchain is not None and job.environ:
        commands["configure"] = configure_commands(job)
        commands["build"] = [command for _, command in build_commands(job)]
    return Built(
        steps=tuple(steps),
        target=job.target.name if known else "",
        prefix=str(job.environment.prefix) if known else "",
        checkout=job.checkout,
        folder=str(job.folder) if known and hasattr(job, "found") else "",
        torch=job.torch,
        commands=commands,
        extension=job.extension.name if job.extension else "",
    )


def _create(job: BuildJob) -> Done:
    """Make or repair the environment; the target has been judged already."""
    request = CreateRequest(job.target.name, mode=mode_by_variables(), check=False, around=job.around)
    made = create(job.context, request)
    _enter(job)
    words = "made" if made.changed else "ready, nothing to do"
    facts = {"prefix": str(made.prefix), "changed": made.changed, "lock": made.state.lock}
    return Done((), facts, lines=(f"{made.prefix}: {words}", *(f"note: {note}" for note in made.notes)))


def _enter(job: BuildJob) -> None:
    """Store the activation and the toolchain of the environment in the job."""
    prefix = job.environment.prefix
    job.activation = find_activation(job.context, job.target.name, prefix)
    found = fit(discover(prefix), read_fingerprints(job.environment.meta))
    job.toolchain = beside_python(job.target.manifest, found) if job.extension else found
    job.environ = build_environ(job)
    if job.extension:
        look_at_torch(job)


def _is_ready(job: BuildJob) -> bool:
    state = job.environment.state()
    return state is not None and state.status is Status.READY


def _would_create(job: BuildJob) -> Done:
    prefix = job.environment.prefix
    if _is_ready(job):
        _enter(job)
        return Done((), {"prefix": str(prefix), "exists": True}, lines=(f"{prefix} is ready",))
    lines = [f"`tenv create {job.target.name}` would be run: {prefix}"]
    if older := made_outside(job.context, job.environment, job.target.name):
        command = f"tenv remove {job.target.name} --prefix {older}"
        lines.append(f"one that was made outside of projects stays as it is: {older}; `{command}` removes it")
    return Done((), {"prefix": str(prefix), "exists": False}, lines=tuple(lines))


def _would_probe(job: BuildJob) -> Done:
    if job.toolchain is None:
        return Done((), {"planned": True}, lines=("runs after the environment is created",))
    return check_probe(job)


def _would_configure(job: BuildJob) -> Done:
    if job.extension and not job.found.configures:
        return Done((), {"planned": True, "commands": [], "folder": str(job.folder)}, lines=(f"objects: {job.folder}",))
    findings = [] if job.extension else list(unread_switches(job))
    commands = configure_commands(job)
    variables = {name: value for name, value in job.switches.items() if name not in job.request.passed}
    words = [f"{name}={value}" for name, value in variables.items()]
    lines = [shlex.join([*words, *command]) for command in commands] or [
        "this revision configures and compiles in one go"
    ]
    return Done(findings, {"planned": True, "commands": commands, "folder": str(job.folder)}, lines=tuple(lines))


def _would_estimate(job: BuildJob) -> Done:
    known = job.found.way is BuildWay.EXTENSION or (job.folder / "CMakeCache.txt").is_file()
    if job.toolchain is None or not known:
        words = shlex.join(["tenv", "plan", job.target.name, "--configure", *_where(job), *job.request.options])
        return Done((), {"planned": True}, lines=(f"`{words}` goes up to the estimate",))
    return check_estimate(job)


def _where(job: BuildJob) -> tuple[str, ...]:
    """Return the option that names the checkout, for a command that is typed in another folder."""
    here = Path(os.path.abspath(Path.cwd()))  # noqa: PTH100 (links stay as they are)
    return () if job.checkout in (here, *here.parents) else ("--pytorch", str(job.checkout))


def _would_build(job: BuildJob) -> Done:
    if job.toolchain is None:
        job.toolchain = discover(job.environment.prefix)
        if job.extension:
            job.toolchain = beside_python(job.target.manifest, job.toolchain)
    return Done((), {"planned": True}, lines=tuple(_shown(job)))


def _shown(job: BuildJob) -> Iterator[str]:
    for _, command in build_commands(job):
        yield shlex.join(command)


def is_checkout(folder: Path) -> bool:
    """Return whether a folder is a checkout of PyTorch or of a package that compiles against it."""
    return is_pytorch(folder) or is_extension(folder)


def find_checkout(start: Path, verb: str = "build") -> Path:
    """Return the checkout at or above a folder; one of PyTorch wins over the extensions among its own tests.

    Args:
        start: The folder.
        verb: The command, for the hint.

    Raises:
        UsageError: There is no checkout, or the one above is another user's, whose code would run here.
    """
    folders = (start, *start.parents)
    found = next((folder for test in (is_pytorch, is_extension) for folder in folders if test(folder)), None)
    if found not in (None, start) and is_foreign(found, BUILD_FILES):
        words = shlex.join(["tenv", verb, "--pytorch", str(found)])
        raise UsageError(
            f"{found}, the checkout above, belongs to another user, and a build runs its code",
            hint=f"`{words}` takes it all the same",
        )
    if found is None:
        raise UsageError(
            f"{start} is not a checkout of PyTorch or of an extension",
            hint=f"`tenv {verb} --pytorch DIR` names a checkout",
        )
    return found


def _libraries(job: BuildJob) -> Iterator[AuditedFile]:
    """Yield the libraries of the build: of the wheel that was made last, else of the build folder."""
    if job.request.wheel:
        wheels = [file for file in job.request.wheel.iterdir() if is_wheel(file.name)]
        newest = max(wheels, key=lambda file: file.stat().st_mtime, default=None)
        yield from inspect(open_tree(newest)) if newest else ()
        return
    for file in extension_libraries(job):
        yield from inspect(open_tree(file))


def _check_gpu_code(job: BuildJob) -> Done:
    """Hold the GPU code of an extension against the architectures that were asked for."""
    libraries = list(_libraries(job))
    code = gpu_code(libraries, job.environ.get(ARCHS, ""))
    names = f"{len(libraries)} librar{'y' if len(libraries) == 1 else 'ies'}"
    facts = {"libraries": [library.path for library in libraries], "gpu_code": [str(one) for one in code.there]}
    lines = (f"{names}, GPU code: {'none' if code.none else code.words}",)
    if not wants_gpu_code(job) or not libraries or (not code.none and not code.lacking):
        return Done((), facts, lines=lines)
    lacking = "" if code.none else str(code.lacking[0])
    return Done([lacking_gpu_code(job, code.words, lacking)], facts, lines=lines)
