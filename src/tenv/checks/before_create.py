"""What `create` asks the rules before it does anything: whether the target can be built on this machine."""

from dataclasses import dataclass, replace

from tenv.checks.host_options import HostOptions, report
from tenv.checks.judge import Judge, find_source
from tenv.checks.pytorch_source import SourceTree
from tenv.checks.rules.arch_list import VARIABLE
from tenv.checks.rules.checkout import OF_CHECKOUT
from tenv.checks.rules.interface import Finding, Scope, Severity
from tenv.core.errors import UnfitHostError
from tenv.facts.tables import Facts
from tenv.host.report import HostReport
from tenv.locks.lock import Lock
from tenv.project.context import Context
from tenv.project.user_facts import user_facts
from tenv.targets.search import Target

__all__ = ["Surroundings", "look_around", "require_build"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a target is judged by; looked at once, since probing a machine starts programs.

    Attributes:
        host: The machine.
        source: The PyTorch that shall be built; None when none is named.
        facts: The tables.
        arch_list: TORCH_CUDA_ARCH_LIST of the caller's environment.
        here: Whether the machine is this one, with nothing assumed.
    """

    host: HostReport
    source: SourceTree | None
    facts: Facts
    arch_list: str = ""
    here: bool = False


def look_around(context: Context, pytorch: str = "", options: HostOptions | None = None) -> Surroundings:
    """Return what targets are judged by.

    Args:
        context: Where things are found.
        pytorch: The PyTorch that shall be built, as `find_source` takes it.
        options: Which host is meant, where it is not this one.

    Raises:
        UsageError: There is no such PyTorch, or what is to be assumed can't be.
        HostReportError: The host report can't be read.
    """
    facts = user_facts(context)
    source = find_source(pytorch, facts)  # first, since it fails faster than probes end
    options = options or HostOptions()
    host, archs = report(context, options), context.environ.get(VARIABLE, "")
    return Surroundings(host, source, facts, archs, here=options == HostOptions())


def require_build(target: Target, around: Surroundings, lock: Lock | None) -> tuple[Finding, ...]:
    """Return what there is to say about making an environment of a target, when no rule is against it.

    What is said about building comes in full. Of what is said about running only errors come, as warnings: the
    programs may be meant for another machine, but nobody should learn it after hours of compiling. What is wrong with a
    checkout keeps no environment from being made, and comes as a warning, too.

    Args:
        target: The target.
        around: What it is judged by.
        lock: The lock that will be installed; None where it is about to be made.

    Raises:
        UnfitHostError: It can't be built here; the findings come with the error.
    """
    judge = Judge(target, around.source, around.facts, locked=lock is not None, lock=lock, arch_list=around.arch_list)
    verdicts = judge(around.host)
    findings = verdicts.about(Scope.BUILD, Scope.BOTH)
    against = [found for found in findings if found.severity is Severity.ERROR and found.code not in OF_CHECKOUT]
    if against:
        codes = tuple(dict.fromkeys(found.code for found in against))
        raise UnfitHostError(
            f"PyTorch can't be built with `{target.name}` on this machine ({', '.join(codes)})",
            [found.to_json() for found in findings],
            hint=(
                f"`tenv explain {codes[0]}` tells more; "
                f"`tenv create {target.name} --no-check` makes the environment all the same"
            ),
        )
    running = [found for found in verdicts.about(Scope.RUN) if found.severity is Severity.ERROR]
    running += [found for found in findings if found.severity is Severity.ERROR]
    return (
        *(found for found in findings if found not in running),
        *(replace(found, severity=Severity.WARNING) for found in running),
    )
