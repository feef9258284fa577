"""Build PyTorch in named steps, from a checkout to `import torch`, or plan the build."""

import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tenv.builds.build_environ import build_environ
from tenv.builds.build_job import BuildJob, BuildRequest, BuildStepName, Done, StepReport, allowed
from tenv.builds.canary_step import run_canary
from tenv.builds.checkout_step import check_checkout, check_target
from tenv.builds.compile_step import build_commands, run_build
from tenv.builds.configure_step import check_summary, configure, configure_commands, unread_switches
from tenv.builds.estimate_step import check_estimate
from tenv.builds.import_step import check_import
from tenv.builds.ninja_plan import read_log, run_of
from tenv.builds.probe_step import check_probe
from tenv.builds.report_page import write_report
from tenv.checks.rules.interface import Finding
from tenv.core.dataclass import dataclass
from tenv.core.errors import TenvError, UsageError
from tenv.core.files import exclusive, make_folder, write_atomic
from tenv.environment.state import Status
from tenv.project.context import Context
from tenv.sources.system.fingerprint import read_fingerprints
from tenv.sources.system.taken import fit
from tenv.targets.search import find_places
from tenv.toolchain.discover import discover
from tenv.verbs.activate import find_activation, made_outside
from tenv.verbs.create import CreateRequest, create
from tenv.verbs.kept_locks import mode_by_variables

__all__ = ["Built", "build", "checkout_context", "find_checkout", "is_checkout", "plan"]

Say = Callable[[StepReport], None]


@dataclass(frozen=True, slots=True)
class Built:
    """The result or the plan of a build.

    Attributes:
        steps: The steps that were taken, in their order; the last one may have failed.
        target: The target's name; empty if none was found.
        prefix: Its environment.
        checkout: The checkout.
        folder: The build folder.
        torch: The version and the location of the built torch.
        commands: The commands, by the name of their step.
        report: The page with its steps and tasks; empty if none was written.
    """

    steps: tuple[StepReport, ...]
    target: str
    prefix: str
    checkout: Path
    folder: str
    torch: dict[str, Any]
    commands: dict[str, list[list[str]]]
    report: str = ""

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


_Step = tuple[BuildStepName, Callable[[BuildJob], Done]]


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
    before: tuple[_Step, ...] = (
        (BuildStepName.CHECKOUT, check_checkout),
        (BuildStepName.TARGET, check_target),
        (BuildStepName.CREATE, _create),
        (BuildStepName.PROBE, check_probe),
    )
    after: tuple[_Step, ...] = (
        (BuildStepName.CONFIGURE, configure),
        (BuildStepName.SUMMARY, check_summary),
        (BuildStepName.ESTIMATE, check_estimate),
        (BuildStepName.CANARY, run_canary),
        (BuildStepName.BUILD, run_build),
        (BuildStepName.IMPORT, check_import),
    )
    if request.only:  # one target of Ninja is all that is asked for
        after = after[:-1]
    steps: list[StepReport] = []
    report, ended = "", False
    if _take(job, before, steps, say):
        with _hold(job):
            log = read_log(job.folder)
            try:
                _take(job, _fitting(job, after), steps, say)
                ended = True
            finally:
                report = write_report(job, steps, run_of(log, read_log(job.folder), 0).rows, ended=ended)
    return replace(_built(job, steps), report=report)


def _fitting(job: BuildJob, steps: Sequence[_Step]) -> tuple[_Step, ...]:
    """Leave out the steps for which a revision that does not configure by itself gives no ground."""
    if job.found.configures:
        return tuple(steps)
    without = (BuildStepName.SUMMARY, BuildStepName.ESTIMATE, BuildStepName.CANARY)
    return tuple(step for step in steps if step[0] not in without)


def plan(context: Context, request: BuildRequest, say: Say, *, configured: bool) -> Built:
    """Return the plan of a build, and write nothing; `configured` runs the steps up to the estimate.

    Raises:
        TenvError: As `build`.
    """
    job = BuildJob(checkout_context(context, request.checkout), request, dry=not configured)
    steps: list[StepReport] = []
    first: tuple[_Step, ...] = ((BuildStepName.CHECKOUT, check_checkout), (BuildStepName.TARGET, check_target))
    if not configured:
        rest: tuple[_Step, ...] = (
            (BuildStepName.CREATE, _would_create),
            (BuildStepName.PROBE, _would_probe),
            (BuildStepName.CONFIGURE, _would_configure),
            (BuildStepName.ESTIMATE, _would_estimate),
            (BuildStepName.BUILD, _would_build),
        )
        _take(job, (*first, *rest), steps, say)
        return _built(job, steps)
    if _take(job, (*first, (BuildStepName.CREATE, _create), (BuildStepName.PROBE, check_probe)), steps, say):
        real: tuple[_Step, ...] = (
            (BuildStepName.CONFIGURE, configure),
            (BuildStepName.SUMMARY, check_summary),
            (BuildStepName.ESTIMATE, check_estimate),
        )
        with _hold(job):
            _take(job, _fitting(job, real), steps, say)
    return _built(job, steps)


def _hold(job: BuildJob) -> AbstractContextManager[None]:
    """Lock the build folder, since two builds in one folder would overwrite each other's objects."""
    make_folder(job.folder.parent)
    ignore = job.checkout / ".tenv" / ".gitignore"
    if not ignore.exists():
        make_folder(ignore.parent)
        write_atomic(ignore, "*\n")
    waiting = job.context.progress.say
    return exclusive(job.notes, f"tenv build {job.target.name}", lambda sentence: waiting(f"waiting: {sentence}"))


def _take(job: BuildJob, steps: Sequence[_Step], taken: list[StepReport], say: Say) -> bool:
    """Run steps in order; return whether none failed."""
    for name, function in steps:
        job.context.progress.phase(name.value)
        start = time.monotonic()
        try:
            done = function(job)
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
    job.toolchain = fit(discover(prefix), read_fingerprints(job.environment.meta))
    job.environ = build_environ(job)


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
    findings = list(unread_switches(job))
    commands = configure_commands(job)
    variables = {name: value for name, value in job.switches.items() if name not in job.request.passed}
    words = [f"{name}={value}" for name, value in variables.items()]
    lines = [" ".join([*words, *command]) for command in commands] or [
        "this revision configures and compiles in one go"
    ]
    return Done(findings, {"planned": True, "commands": commands, "folder": str(job.folder)}, lines=tuple(lines))


def _would_estimate(job: BuildJob) -> Done:
    if job.toolchain is None or not (job.folder / "CMakeCache.txt").is_file():
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
    return Done((), {"planned": True}, lines=tuple(_shown(job)))


def _shown(job: BuildJob) -> Iterator[str]:
    for _, command in build_commands(job):
        yield " ".join(command)


def is_checkout(folder: Path) -> bool:
    """Return whether a folder is a checkout of PyTorch."""
    from tenv.checks.pytorch_source import SourceTree, read_source

    return isinstance(read_source(folder), SourceTree)


def find_checkout(start: Path, verb: str = "build") -> Path:
    """Return the checkout at or above a folder.

    Args:
        start: The folder.
        verb: The command, for the hint.

    Raises:
        UsageError: There is no checkout.
    """
    found = next((folder for folder in (start, *start.parents) if is_checkout(folder)), None)
    if found is None:
        raise UsageError(f"{start} is not a checkout of PyTorch", hint=f"`tenv {verb} --pytorch DIR` names a checkout")
    return found
