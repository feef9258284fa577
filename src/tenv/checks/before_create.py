"""Check that a target can be built on this host before `create` changes anything.

The driver and the GPUs decide whether an environment uses its cuda-compat, so that answer can change later.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from tenv.activation.changes import ACTIVATION, Action, read_activation
from tenv.checks.host_options import HostOptions, report
from tenv.checks.judge import Judge
from tenv.checks.pytorch_source import SourceTree, find_source
from tenv.checks.rules.checkout import OF_CHECKOUT
from tenv.checks.rules.common import cuda_on
from tenv.checks.rules.driver import Verdict, judge_on_host, support
from tenv.checks.rules.gpu import VARIABLE
from tenv.checks.rules.interface import Finding, Scope, Severity
from tenv.checks.rules.resources import DISK
from tenv.checks.rules.whole_toolkit import exported_switches
from tenv.core.dataclass import dataclass
from tenv.core.errors import UnbuildableLockError, UnfitHostError
from tenv.environment.state import Environment
from tenv.facts.tables import Facts
from tenv.host.report import HostReport
from tenv.locks.lock import Lock
from tenv.project.context import Context
from tenv.targets.search import Target


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The surroundings that a target is judged by. They are collected once, since probes start programs."""

    host: HostReport
    """The host."""
    source: SourceTree | None
    """The PyTorch to build; None if none is named."""
    facts: Facts
    """The tables."""
    arch_list: str = ""
    """`TORCH_CUDA_ARCH_LIST` in the caller's environment."""
    here: bool = False
    """Whether the host is this machine, with no assumed values."""
    exported: Mapping[str, str] = field(default_factory=dict)
    """The build switches of PyTorch in the caller's environment."""


def look_around(context: Context, pytorch: str = "", options: HostOptions | None = None) -> Surroundings:
    """Return the surroundings that targets are judged by: the host, the PyTorch revision and the facts.

    Args:
        context: The project and the caller's environment.
        pytorch: The PyTorch to build, as `find_source` takes it.
        options: Which host to judge if it is not this machine.

    Raises:
        UsageError: There is no such PyTorch, or a value can't be assumed.
        HostReportError: The host report can't be read.
    """
    facts = context.facts()
    source = find_source(pytorch, facts)  # first, since it fails faster than probes end
    options = options or HostOptions()
    host, archs = report(context, options), context.environ.get(VARIABLE, "")
    switches = exported_switches(facts, context.environ)
    return Surroundings(host, source, facts, archs, here=options == HostOptions(), exported=switches)


def require_build(
    target: Target,
    around: Surroundings,
    lock: Lock | None,
    there: frozenset[str] = frozenset(),
    *,
    restoring: bool = False,
    compiles: bool = True,
) -> tuple[Finding, ...]:
    """Return the findings about creating an environment of a target if no rule forbids it.

    Findings about building are returned as they are. Of the findings about running, only errors are returned, as
    warnings: the programs may run on another host, but the user should know before compiling for hours. Errors about
    a checkout keep no environment from being made, and come as warnings, too.

    Args:
        target: The target.
        around: The surroundings that the target is judged by.
        lock: The lock to install; None if it is not solved yet.
        there: The digests of the packages that the environment holds already.
        restoring: Whether the environment is repaired or goes back to an earlier lock; a small disk never stops that.
        compiles: Whether something is compiled here. Else errors about building alone come as warnings.

    Raises:
        UnfitHostError: The target can't be built here. The error holds the findings.
        UnbuildableLockError: It can't be built anywhere with this lock. The error holds the findings.
    """
    judge = Judge(
        target,
        around.source,
        around.facts,
        locked=lock is not None,
        lock=lock,
        arch_list=around.arch_list,
        there=there,
        exported=around.exported,
    )
    verdicts = judge(around.host)
    findings = verdicts.about(Scope.BUILD, Scope.BOTH)
    passed = {*OF_CHECKOUT, *((DISK,) if restoring else ())}
    deciding = findings if compiles else verdicts.about(Scope.BOTH)
    against = [found for found in deciding if found.severity is Severity.ERROR and found.code not in passed]
    if against:
        codes = tuple(dict.fromkeys(found.code for found in against))
        of_lock = set(against) <= _of_lock(target, around, lock)
        manifest = target.manifest
        of_torch = manifest.beside or manifest.requirements.cuda_from
        who = "an extension can't be compiled" if of_torch else "PyTorch can't be built"
        what = f"the lock of `{target.name}` on any machine" if of_lock else f"`{target.name}` on this machine"
        raise (UnbuildableLockError if of_lock else UnfitHostError)(
            f"{who} with {what} ({', '.join(codes)})",
            [found.to_json() for found in findings],
            hint=(
                f"`tenv explain {codes[0]}` has the details; `tenv create {target.name} --no-check` creates the "
                "environment anyway"
            ),
        )
    running = [found for found in verdicts.about(Scope.RUN) if found.severity is Severity.ERROR]
    running += [found for found in findings if found.severity is Severity.ERROR]
    return (
        *(found for found in findings if found not in running),
        *(replace(found, severity=Severity.WARNING) for found in running),
    )


def unfit_pythons(target: Target, around: Surroundings) -> tuple[str, ...]:
    """Return the Python minors of a target that the revision can't be built with; empty if it supports none.

    Args:
        target: The target.
        around: The host and the PyTorch revision.
    """
    return Judge(target, around.source, around.facts, locked=False).unfit_pythons(around.host)


def allows_compat(target: Target, platform: str, around: Surroundings) -> bool:
    """Return whether programs need cuda-compat: the driver is too old, and the GPUs support forward compatibility.

    Args:
        target: The target.
        platform: The platform of this host.
        around: The host to judge by.
    """
    cuda = cuda_on(target.manifest.on(platform), around.host)
    return support(judge_on_host(cuda, around.host, around.facts)) is Verdict.FORWARD


def uses_compat_as_allowed(folder: Path, environment: Environment, *, allowed: bool) -> bool:
    """Return whether an environment's activation uses cuda-compat exactly if it may.

    An older cuda-compat in front of a newer driver breaks CUDA, so a driver update requires a new decision.

    Args:
        folder: The folder of the environment's cuda-compat.
        environment: The environment.
        allowed: Whether it may use it.
    """
    changes = read_activation(environment.meta / ACTIVATION).changes
    used = any(row.action is Action.PREPEND and row.value == str(folder) for row in changes)
    return used == allowed


def _of_lock(target: Target, around: Surroundings, lock: Lock | None) -> set[Finding]:
    """Return the errors that the lock has on every host: those on an unknown host that end without the lock."""
    if lock is None:
        return set()
    anywhere = replace(HostReport.unknown(), platform=around.host.platform)

    def errors(*, locked: bool) -> set[Finding]:
        judge = Judge(target, around.source, around.facts, locked=locked, lock=lock if locked else None)
        return {found for found in judge(anywhere).findings if found.severity is Severity.ERROR}

    return errors(locked=True) - errors(locked=False)
