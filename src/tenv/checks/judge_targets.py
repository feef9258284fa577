"""Judge targets on a host in a folder: with its checkout, and with the lock and the environment of each target."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tenv.activation.changes import ACTIVATION, is_own, read_activation
from tenv.checks.before_create import Surroundings, look_around
from tenv.checks.choose_target import TargetChoice, choose, of_other_revisions, worst
from tenv.checks.host_options import HostOptions, read, with_driver
from tenv.checks.judge import Judge, Verdicts, ask, conclude, find_lock, platform_of
from tenv.checks.rules.catalogue import DRIVER_RULES
from tenv.checks.rules.interface import Case, Finding, Scope
from tenv.checks.rules.judged_driver import driver_of, useless_override
from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBrokenError, ManifestError, NoTargetError
from tenv.core.versions import Version
from tenv.environment.state import Environment, digests_of
from tenv.facts.cuda_driver import CudaDriverTable
from tenv.host.interface import Fact, Missing
from tenv.host.report import FoundBy, HostReport, Lead, Toolkit
from tenv.host.toolkit_content import compiler_limits, patched
from tenv.locks.lock import Lock
from tenv.project.context import Context
from tenv.targets.manifest import Manifest, Requirements
from tenv.targets.order import newest_first
from tenv.targets.search import Target
from tenv.toolchain.discover import discover


@dataclass(frozen=True, slots=True)
class DriverReport:
    """A driver compared with targets."""

    driver: Fact[Version] | Missing
    """The driver of the host, or one that its CUDA implies, or why none is known."""
    targets: tuple[Verdicts, ...]
    """The verdicts on each target."""
    toolkits: tuple[Verdicts, ...] = ()
    """The verdicts on each release of the CUDA toolkit; empty if a target was named."""
    override: Finding | None = None
    """The finding about an unusable CONDA_OVERRIDE_CUDA; None if it is used or unset."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A target with the verdicts on it."""

    target: Target
    """The target."""
    verdicts: Verdicts
    """The verdicts."""
    other: str
    """Why it is not meant for the PyTorch revision, or an empty string."""

    def fits(self, *, build_only: bool) -> bool:
        """Return whether it builds and runs; with `build_only`, whether it builds. Unknown is no."""
        return not self.other and self.verdicts.build is True and (build_only or self.verdicts.run is True)

    def reason(self, *, build_only: bool) -> str:
        """Return the message of the most severe finding against it; empty if there is none."""
        if self.other:
            return self.other
        scopes = (Scope.BUILD, Scope.BOTH) if build_only else tuple(Scope)
        against = self.verdicts.against(*scopes)
        return worst(against)[0] if against else ""


@dataclass(frozen=True, slots=True)
class FitsHere:
    """The targets on one host."""

    around: Surroundings
    """The host and the PyTorch revision."""
    judged: tuple[Judged, ...]
    """Every readable target, newest first."""
    choice: TargetChoice | None
    """The target that `create auto` takes; None if no target suits."""
    without: str = ""
    """Why there is no choice, or an empty string."""


def check(context: Context, names: Sequence[str | None], pytorch: str, options: HostOptions) -> tuple[Verdicts, ...]:
    """Return the verdicts on targets.

    Args:
        context: Where things are found.
        names: The targets; None for the default target.
        pytorch: The PyTorch to build, as `find_source` takes it.
        options: Which host to judge if it is not this machine.

    Raises:
        UsageError: There is no such target or no such PyTorch.
        HostReportError: The host report can't be read.
    """
    options = read(options)
    known = with_driver(context, options)
    targets = [known.find_target(name) for name in names]
    return tuple(_judged(context, targets, look_around(context, pytorch, options), options))


def check_auto(
    context: Context, pytorch: str, options: HostOptions, say: Callable[[str], None]
) -> tuple[TargetChoice, Verdicts]:
    """Return the target that `create auto` takes and the verdicts on it.

    Args:
        context: Where things are found.
        pytorch: The PyTorch to build, as `find_source` takes it.
        options: Which host to judge if it is not this machine.
        say: Called with a message for each target that can't be read.

    Raises:
        NoTargetError: No target suits.
        UsageError: There is no such PyTorch, or a value can't be assumed.
        HostReportError: The host report can't be read.
    """
    options = read(options)
    around = look_around(context, pytorch, options)
    choice = choose(context, around, say)
    (verdicts,) = _judged(context, (context.places.find(choice.target),), around, options)
    return choice, verdicts


def check_here(context: Context, pytorch: str, options: HostOptions, say: Callable[[str], None]) -> FitsHere:
    """Return the verdicts on every readable target, newest first, and the target that `create auto` takes.

    Args:
        context: Where things are found.
        pytorch: The PyTorch to build, as `find_source` takes it.
        options: Which host to judge if it is not this machine.
        say: Called with a message for each target that can't be read.

    Raises:
        UsageError: There is no such PyTorch, or a value can't be assumed.
        HostReportError: The host report can't be read.
    """
    options = read(options)
    around = look_around(context, pytorch, options)
    targets = newest_first(_all_targets(context), platform_of(around.host))
    locks = {target.name: lock for target in targets if (lock := find_lock(target)[0])}
    verdicts = _judged(context, targets, around, options, locks)
    judged = tuple(
        Judged(target, found, of_other_revisions(target, around))
        for target, found in zip(targets, verdicts, strict=True)
    )
    try:
        return FitsHere(around, judged, choose(context, around, say, locks))
    except NoTargetError as error:
        return FitsHere(around, judged, None, error.message.split(":\n")[0])


def check_driver(context: Context, name: str | None, options: HostOptions) -> DriverReport:
    """Return the verdicts on a target; without a name, on every readable target and every toolkit.

    Args:
        context: Where things are found.
        name: The target.
        options: Which host to judge if it is not this machine.

    Raises:
        UsageError: There is no such target, or the working folder is a checkout without a version.
        HostReportError: The host report can't be read.
    """
    options = read(options)
    targets = find_targets(with_driver(context, options), name)
    around = look_around(context, "", options)
    host, facts = around.host, around.facts
    driver = driver_of(host, facts)
    if isinstance(driver, Fact) and isinstance(host.driver, Fact):
        driver = host.driver  # a Jetson is judged by a desktop driver with the same CUDA
    return DriverReport(
        driver,
        tuple(_judged(context, targets, around, options)),
        () if name else tuple(_of_toolkit(cuda, around) for cuda in newest_toolkits(facts.cuda_driver)),
        useless_override(host, facts),
    )


def find_targets(context: Context, name: str | None) -> tuple[Target, ...]:
    """Return the named target; without a name, every readable target (`tenv targets` reports the others)."""
    return (context.places.find(name),) if name else tuple(_all_targets(context))


def newest_toolkits(table: CudaDriverTable) -> tuple[Version, ...]:
    """Return the newest release of each minor version of the toolkit, newest first."""
    newest: dict[str, Version] = {}
    for row in table.toolkits:
        newest.setdefault(row.major_minor, row.toolkit)
    return tuple(newest.values())


def with_environment(host: HostReport, prefix: Path) -> HostReport:
    """Return the host with the CUDA toolkit of an environment first if the environment has one."""
    toolchain = discover(prefix)
    limits = compiler_limits(toolchain.cuda) if toolchain.cuda else None
    if toolchain.cuda is None or limits is None or isinstance(host.toolkits, Missing):
        return host
    found_by = (FoundBy(Lead.ENVIRONMENT, "the environment"),)
    own = Toolkit(
        str(toolchain.cuda), found_by, toolchain.cuda_version, compilers=limits, patched=patched(toolchain.cuda)
    )
    return replace(host, toolkits=replace(host.toolkits, value=(own, *host.toolkits.value)))


def _all_targets(context: Context) -> Iterator[Target]:
    for name in context.places.names():
        try:
            yield context.places.find(name)
        except ManifestError:
            continue


def _judged(
    context: Context,
    targets: Iterable[Target],
    around: Surroundings,
    options: HostOptions,
    locks: Mapping[str, Lock] | None = None,
) -> Iterator[Verdicts]:
    """Yield the verdicts on each target, with its environment unless a report describes the host.

    Args:
        context: Where things are found.
        targets: The targets.
        around: The host and the PyTorch revision.
        options: Which host is judged if it is not this machine.
        locks: The locks that the caller has read, by target.
    """
    known = locks or {}
    for target in targets:
        host, activated, there = around.host, None, frozenset[str]()
        if not options.host_report:
            environment = context.environment(target.name, None)
            host, activated = with_environment(host, environment.prefix), _activated(environment, context.environ)
            there = _there(environment)
        judge = Judge(
            target,
            around.source,
            around.facts,
            lock=known.get(target.name),
            arch_list=around.arch_list,
            activated=activated,
            there=there,
            exported=around.exported,
        )
        yield judge(host)


def _there(environment: Environment) -> frozenset[str]:
    """Return the digests of the packages that an environment holds; none if its state can't be read."""
    try:
        return digests_of(environment.state())
    except EnvironmentBrokenError:
        return frozenset()


def _activated(environment: Environment, environ: Mapping[str, str]) -> dict[str, str] | None:
    """Return the values of an environment's activation, with those of the user that stay; None if it can't be read."""
    try:
        changes = read_activation(environment.meta / ACTIVATION).changes
    except EnvironmentBrokenError:
        return None
    own = {change.name: environ[change.name] for change in changes if change.default and is_own(environ, change.name)}
    return {change.name: change.value for change in changes} | own


def _of_toolkit(cuda: Version, around: Surroundings) -> Verdicts:
    """Return the verdicts on a release of the toolkit: a target with nothing else, by the rules about the driver."""
    manifest = Manifest("", "", requirements=Requirements(cuda, None))
    return conclude(ask(Case(manifest, platform_of(around.host), None, around.host, None, around.facts), DRIVER_RULES))
