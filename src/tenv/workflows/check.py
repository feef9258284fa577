"""Judge a target on a machine by every rule: whether it can be built there, and whether what it builds runs there."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tenv.errors import FactsError, TenvError, UsageError
from tenv.facts.tables import Facts
from tenv.host.interface import Fact
from tenv.host.machine import current_platform
from tenv.host.report import HostReport
from tenv.lock import Lock, read_lock
from tenv.rules.catalogue import RULES
from tenv.rules.common import cuda_on
from tenv.rules.interface import Case, Finding, Rule, Scope, Severity
from tenv.source import SourceTree, from_release, read_source
from tenv.targets import Target
from tenv.workflows.check_driver import find_targets, judge_host
from tenv.workflows.context import Context
from tenv.workflows.facts import user_facts
from tenv.workflows.fleet import Asked, Memo, ask, refuse_host_options
from tenv.workflows.host import HostOptions, report

__all__ = ["Judge", "Verdicts", "check", "check_fleet", "find_source"]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What the rules say of a target on a machine.

    Attributes:
        target: The target's name.
        platform: The platform that was asked about.
        build: Whether it can be built there.
        run: Whether what it builds is known to run there.
        findings: What the rules have to say.
        pytorch: The version of PyTorch that was asked about, or an empty string.
        lock_problem: Why the lock was not looked at, or an empty string.
    """

    target: str
    platform: str
    build: bool
    run: bool
    findings: tuple[Finding, ...]
    pytorch: str
    lock_problem: str

    def to_json(self) -> dict[str, Any]:
        """Return the verdicts as plain values, without the findings."""
        return {
            "build": self.build,
            "run": self.run,
            "target": self.target,
            "pytorch": self.pytorch,
            "platform": self.platform,
            "lock_problem": self.lock_problem,
        }


class Judge:
    """A target with all that its verdicts depend on but the machine; made once for many machines."""

    def __init__(self, target: Target, source: SourceTree | None, facts: Facts) -> None:
        self._target = target
        self._source = source
        self._facts = facts
        self._lock, self._lock_problem = _read_lock(target)
        self._rules = [(rule, Memo(partial(self._find, rule))) for rule in RULES]
        self._driver = Memo(self._judge_driver)

    def __call__(self, host: HostReport) -> Verdicts:
        """Return the verdicts on a machine."""
        runs, about_driver = self._driver(host)
        found = [(rule.scope, finding) for rule, find in self._rules for finding in find(host)]
        if about_driver and all(finding.code != about_driver.code for _, finding in found):
            found.insert(0, (Scope.RUN, about_driver))
        fatal = {scope for scope, finding in found if finding.severity is Severity.ERROR}
        return Verdicts(
            target=self._target.name,
            platform=_platform(host),
            build=fatal.isdisjoint((Scope.BUILD, Scope.BOTH)),
            run=runs and fatal.isdisjoint((Scope.RUN, Scope.BOTH)),
            findings=tuple(finding for _, finding in found),
            pytorch=self._source.version.value if self._source else "",
            lock_problem=self._lock_problem,
        )

    def _find(self, rule: Rule, host: HostReport) -> tuple[Finding, ...]:
        platform = _platform(host)
        manifest = self._target.manifest.on(platform)
        return tuple(rule.find(Case(manifest, platform, self._lock, host, self._source, self._facts)))

    def _judge_driver(self, host: HostReport) -> tuple[bool, Finding | None]:
        cuda = cuda_on(self._target.manifest.on(_platform(host)), host)
        verdict = judge_host(cuda, host, self._facts)
        return verdict.run, verdict.finding


def check(context: Context, name: str | None, pytorch: str, options: HostOptions) -> Verdicts:
    """Return the verdicts on a target.

    Args:
        context: Where things are found.
        name: The target; None for that of the only environment.
        pytorch: The PyTorch that shall be built, as `find_source` takes it.
        options: Which host is meant, where it is not this one.

    Raises:
        UsageError: There is no such target or no such PyTorch.
        HostReportError: The host report can't be read.
    """
    target = context.find_target(name)
    facts = user_facts(context)
    source = find_source(pytorch, facts)
    return Judge(target, source, facts)(report(context, options))


def check_fleet(
    context: Context, name: str | None, pytorch: str, path: Path, options: HostOptions
) -> Iterator[Asked[Verdicts]]:
    """Yield the verdicts for each machine of a fleet, on a target or on every target that can be read.

    Args:
        context: Where things are found.
        name: The target.
        pytorch: The PyTorch that shall be built, as `find_source` takes it.
        path: The file or the folder with the host reports.
        options: Must name no other host.

    Raises:
        UsageError: There is no such target, no such PyTorch or no report, or another host is named too.
    """
    refuse_host_options(options)
    facts = user_facts(context)
    source = find_source(pytorch, facts)
    judges = [Judge(target, source, facts) for target in find_targets(context, name)]
    return ask(path, lambda host: tuple(judge(host) for judge in judges))


def find_source(pytorch: str, facts: Facts) -> SourceTree | None:
    """Return what a PyTorch asks for.

    Args:
        pytorch: A folder with a checkout, or a version; empty for the working folder if that is a checkout.
        facts: The tables, with what the releases ask for.

    Returns:
        What it asks for; None when nothing is named and the working folder is no checkout.

    Raises:
        UsageError: What is named is neither a checkout nor a version that the tables know of.
        FactsError: The row of that version can't be used.
    """
    folder = Path(pytorch)
    if folder.is_dir():
        found = read_source(folder if pytorch else Path.cwd())
        if isinstance(found, SourceTree) or not pytorch:
            return found if isinstance(found, SourceTree) else None
        raise UsageError(found.reason, hint="name a checkout of PyTorch, or a version: `--pytorch 2.9`")
    if re.match(r"v?\d+\.\d", pytorch):
        return _release(pytorch.removeprefix("v"), facts)
    hint = "name a folder that is there, or a version: `--pytorch 2.9`"
    raise UsageError(f"`{pytorch}` is neither a folder nor a version of PyTorch", hint=hint)


def _release(version: str, facts: Facts) -> SourceTree:
    release = facts.pytorch_build.release(version)
    if release is None:
        oldest = facts.pytorch_build.releases[0].version
        raise UsageError(f"what PyTorch {version} asks for is not known", hint=f"the tables begin with {oldest}")
    origin = f"PyTorch {release.version}: {release.basis.source}"
    try:
        return from_release(version, release.asked(), origin)
    except ValueError as error:  # of a row of the user's
        raise FactsError(f"{origin}: {error}") from error


def _platform(host: HostReport) -> str:
    return host.platform.value if isinstance(host.platform, Fact) else current_platform()


def _read_lock(target: Target) -> tuple[Lock | None, str]:
    try:
        return read_lock(target.lock_file, target.name), ""
    except TenvError as error:
        return None, error.message
