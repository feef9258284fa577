"""Judge a target on a host by every rule: whether it builds there, and whether what it builds runs there."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tenv.activation.changes import ACTIVATION, is_own, read_activation
from tenv.checks.gpu_verdicts import GpuFindings, GpuVerdict, about_gpus, per_gpu, settled
from tenv.checks.host_options import HostOptions, read, report, with_driver
from tenv.checks.pytorch_source import SourceTree, from_release, is_pytorch, read_source
from tenv.checks.rules.arch_list import VARIABLE, named_archs
from tenv.checks.rules.catalogue import RULES
from tenv.checks.rules.driver_family import GPU_RULES
from tenv.checks.rules.from_machine import PLATFORM
from tenv.checks.rules.interface import Case, Finding, Rule, Scope, Severity, decide
from tenv.checks.rules.pytorch import unfit_pythons
from tenv.checks.rules.whole_toolkit import exported_switches
from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBrokenError, FactsError, TenvError, UsageError
from tenv.environment.state import Environment, digests_of
from tenv.facts.pytorch_tried import nightly_day
from tenv.facts.tables import Facts
from tenv.host.interface import Fact, Missing
from tenv.host.machine import current_platform
from tenv.host.report import FoundBy, HostReport, Lead, Toolkit
from tenv.host.toolkit_headers import compiler_limits, patched
from tenv.locks.lock import Lock
from tenv.locks.lock_file import read_lock
from tenv.project.context import Context
from tenv.project.user_facts import user_facts
from tenv.targets.manifest import Manifest
from tenv.targets.search import Target
from tenv.toolchain.discover import discover

__all__ = ["Judge", "Verdicts", "check", "find_source", "platform_of", "with_environment"]


_REVISION = r"v?[0-9]{1,4}(\.[0-9]{1,4}){1,3}([.+-]?[A-Za-z][\w.+-]*|\+[\w.+-]+)?"
"""A release, ``2.9.0a0+git1234`` and ``2.9.0+cu128`` among them."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts on a target on a host.

    Attributes:
        target: The target's name.
        platform: The platform that is judged.
        build: Whether it can be built there; None if unknown.
        run: Whether what it builds runs there; None if unknown.
        findings: The findings of all rules.
        pytorch: The PyTorch version that is judged, or an empty string.
        lock_problem: Why the lock was not judged, or an empty string.
        gpus: The verdicts for each kind of GPU.
    """

    target: str
    platform: str
    build: bool | None
    run: bool | None
    findings: tuple[Finding, ...]
    pytorch: str
    lock_problem: str
    gpus: tuple[GpuVerdict, ...] = ()

    def about(self, *scopes: Scope) -> tuple[Finding, ...]:
        """Return the findings of the rules of the given scopes."""
        scope_of = {code: rule.scope for rule in RULES for code in rule.codes}
        return tuple(finding for finding in self.findings if scope_of[finding.code] in scopes)

    def against(self, *scopes: Scope) -> tuple[Finding, ...]:
        """Return the findings that make a verdict of the given scopes "no" or "unknown"."""
        errors = {finding for finding in self.about(*scopes) if finding.severity is Severity.ERROR}
        return tuple(
            finding
            for finding in self.findings
            if finding in errors or (finding.unknown and finding.unknown.scope in scopes)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the verdicts as JSON values, without the findings."""
        return {
            "build": self.build,
            "run": self.run,
            "target": self.target,
            "pytorch": self.pytorch,
            "platform": self.platform,
            "needs": sorted({finding.unknown.needs for finding in self.findings if finding.unknown}),
            "lock_problem": self.lock_problem,
            "gpus": [gpu.to_json() for gpu in self.gpus],
        }


class Judge:
    """A target with everything that its verdicts depend on except the host. One is made for many hosts.

    Attributes:
        lock: The target's lock; None if it is not judged.
        lock_problem: Why it is not judged, or an empty string.
        questions: One question per rule: what it finds on a host; the last one, what holds for each GPU.
    """

    def __init__(
        self,
        target: Target,
        source: SourceTree | None,
        facts: Facts,
        *,
        locked: bool = True,
        lock: Lock | None = None,
        arch_list: str = "",
        activated: Mapping[str, str] | None = None,
        there: frozenset[str] = frozenset(),
        exported: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare a target.

        Args:
            target: The target.
            source: The PyTorch to build; None if none is named.
            facts: The tables.
            locked: Whether to judge the lock; False if it is about to be solved again.
            arch_list: TORCH_CUDA_ARCH_LIST of the caller's environment.
            lock: The lock if the caller has read it.
            activated: The variables that activating its environment sets; None if there is none.
            there: The digests of the packages that its environment holds already.
            exported: The build switches of PyTorch in the caller's environment.
        """
        self._target = target
        self._source = source
        self._facts = facts
        self._arch_list = arch_list
        self._activated = activated
        self._there = there
        self._exported = exported or {}
        self.lock, self.lock_problem = _read_lock(target, lock) if locked else (None, "it is not judged")
        self._on: dict[str, tuple[Manifest, str]] = {}
        self._last: Case | None = None
        self._rules = RULES
        self.questions: tuple[Callable[[HostReport], tuple[Any, ...]], ...] = (
            *(partial(self._find, rule) for rule in self._rules),
            self._about_gpus,
        )

    def __call__(self, host: HostReport) -> Verdicts:
        """Return the verdicts on a host."""
        return self.conclude(host, [question(host) for question in self.questions])

    def conclude(self, host: HostReport, answers: Sequence[Iterable[Any]]) -> Verdicts:
        """Derive the verdicts on a host from the answers to `questions`.

        A verdict is "no" if an error decides it, else "unknown" if a finding leaves it open.
        """
        *yielded, kinds = answers
        pairs = [(rule, one) for rule, of in zip(self._rules, yielded, strict=True) for one in of]
        common = [(rule.scope, one) for rule, one in pairs if rule not in GPU_RULES]
        found = settled(((rule.scope, one) for rule, one in pairs), kinds)
        if foreign := [one for one in found if one[1].code == PLATFORM]:
            found, common = tuple(foreign), foreign  # the manifest's requirements are for another platform
            kinds = [replace(kind, found=()) for kind in kinds]
        return Verdicts(
            target=self._target.name,
            platform=platform_of(host),
            build=decide(Scope.BUILD, found),
            run=decide(Scope.RUN, found),
            findings=tuple(finding for _, finding in found),
            pytorch=self._source.version.value if self._source else "",
            lock_problem=self.lock_problem,
            gpus=per_gpu(kinds, found, common),
        )

    def unfit_pythons(self, host: HostReport) -> tuple[str, ...]:
        """Return the Python minors of the target that the revision can't be built with; empty if it supports none."""
        return unfit_pythons(self._case(host))

    def _find(self, rule: Rule, host: HostReport) -> tuple[Finding, ...]:
        return tuple(rule(self._case(host)))

    def _about_gpus(self, host: HostReport) -> tuple[GpuFindings, ...]:
        return about_gpus(self._case(host))

    def _case(self, host: HostReport) -> Case:
        case = self._last
        if case is None or case.host is not host:  # one for all rules
            platform = platform_of(host)
            manifest, named = self._manifest(platform)
            about = (self.lock, host, self._source, self._facts, named, self._activated, self._there, self._exported)
            case = self._last = Case(manifest, platform, *about)
        return case

    def _manifest(self, platform: str) -> tuple[Manifest, str]:
        """Return the target's manifest on a platform, and the GPU architectures that are named for it."""
        if platform not in self._on:
            manifest = self._target.manifest.on(platform)
            self._on[platform] = (manifest, named_archs(manifest, self._arch_list))
        return self._on[platform]


def check(context: Context, name: str | None, pytorch: str, options: HostOptions) -> Verdicts:
    """Return the verdicts on a target.

    Args:
        context: Where things are found.
        name: The target; None for the target of the only environment.
        pytorch: The PyTorch to build, as `find_source` takes it.
        options: Which host to judge if it is not this machine.

    Raises:
        UsageError: There is no such target or no such PyTorch.
        HostReportError: The host report can't be read.
    """
    options = read(options)
    target = with_driver(context, options).find_target(name)
    facts = user_facts(context)
    source = find_source(pytorch, facts)
    host = report(context, options)
    activated, there, archs = None, frozenset[str](), context.environ.get(VARIABLE, "")
    if not options.host_report:
        environment = context.environment(target.name, None)
        host, activated = with_environment(host, environment.prefix), _activated(environment, context.environ)
        there = _there(environment)
    switches = exported_switches(facts, context.environ)
    judge = Judge(target, source, facts, arch_list=archs, activated=activated, there=there, exported=switches)
    return judge(host)


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


def find_source(pytorch: str, facts: Facts) -> SourceTree | None:
    """Return the requirements of a PyTorch revision.

    Args:
        pytorch: A folder with a checkout, or a version; empty for the working folder if it is a checkout.
        facts: The tables, with the requirements of releases.

    Returns:
        The requirements; None if nothing is named and the working folder is not a checkout.

    Raises:
        UsageError: The name is neither a checkout nor a version in the tables; or nothing is named, and the working
            folder is a checkout without a version.
        FactsError: The row of that version is unusable.
    """
    folder = Path(pytorch)
    if os.path.isdir(pytorch or "."):  # noqa: PTH112 (no error for an invalid folder name)
        found = read_source(folder if pytorch else Path.cwd())
        if isinstance(found, SourceTree):
            return found
        if not pytorch and not is_pytorch(Path.cwd()):
            return None
        where = "" if pytorch else "the working folder has PyTorch's CMakeLists.txt, but can't be used as a checkout: "
        hint = "pass a checkout of PyTorch or a version: `--pytorch 2.9`"
        raise UsageError(f"{where}{found.reason}", hint=hint)
    if re.fullmatch(_REVISION, pytorch.strip()):
        return _release(pytorch.strip().removeprefix("v"), facts)
    hint = "pass an existing folder or a version: `--pytorch 2.9`"
    raise UsageError(f"`{pytorch}` is neither a folder nor a version of PyTorch", hint=hint)


def _release(version: str, facts: Facts) -> SourceTree:
    release = facts.pytorch_build.release(version)
    if release is None:
        oldest = facts.pytorch_build.releases[0].version
        raise UsageError(f"what PyTorch {version} asks for is not known", hint=f"the tables start with {oldest}")
    origin = f"PyTorch {release.version}: {release.basis.source}"
    try:
        return from_release(version, release.asked(nightly_day(version)), origin)
    except ValueError as error:  # a row of the user's facts
        raise FactsError(f"{origin}: {error}") from error


def platform_of(host: HostReport) -> str:
    """Return the platform of a host; that of this machine if it is unknown."""
    return host.platform.value if isinstance(host.platform, Fact) else current_platform()


def _read_lock(target: Target, lock: Lock | None) -> tuple[Lock | None, str]:
    try:
        return lock or read_lock(target.lock_file, target.name), ""
    except TenvError as error:
        return None, error.message
