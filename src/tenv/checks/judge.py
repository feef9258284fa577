"""Judge a target on a host: whether it builds there, and whether the result runs there.

A host with several GPUs gets the verdicts for each kind of GPU, too: nvcc compiles for some of them, or the driver has
dropped one. Each kind of GPU is judged by the rules about GPUs as if it were the host's only one, and by the findings
of all other rules about the host.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from tenv.checks.pytorch_source import SourceTree
from tenv.checks.rules.catalogue import GPU_RULES, RULES
from tenv.checks.rules.common import KnownGpu, cuda_of, identify
from tenv.checks.rules.driver import DriverVerdict, Verdict, verdict_of
from tenv.checks.rules.driver_findings import CODES
from tenv.checks.rules.from_machine import PLATFORM
from tenv.checks.rules.gpu import is_covered, listed_archs, named_archs
from tenv.checks.rules.interface import Case, Finding, Rule, Scope, Severity, decide
from tenv.checks.rules.pytorch import unfit_pythons
from tenv.core.dataclass import dataclass
from tenv.core.errors import TenvError
from tenv.core.versions import Version
from tenv.facts.tables import Facts
from tenv.host.interface import Fact, Missing
from tenv.host.machine import current_platform
from tenv.host.report import Gpu, HostReport
from tenv.locks.lock import Lock
from tenv.locks.lock_file import read_lock
from tenv.targets.search import Target

if TYPE_CHECKING:
    from tenv.targets.manifest import Manifest


@dataclass(frozen=True, slots=True)
class GpuVerdict:
    """The verdicts on a target for one kind of GPU."""

    name: str
    """Its name."""
    capability: Version | None
    """Its compute capability; None if unknown."""
    count: int
    """How many of them the host has."""
    build: bool | None
    """Whether the target can be built on the host with code for it; None if unknown."""
    run: bool | None
    """Whether the result runs on it; None if unknown."""

    def to_json(self) -> dict[str, Any]:
        """Return the verdicts as JSON values."""
        return {
            "name": self.name,
            "compute_capability": str(self.capability or ""),
            "count": self.count,
            "build": self.build,
            "run": self.run,
        }


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts on a target on a host."""

    target: str
    """The target's name."""
    platform: str
    """The platform that is judged."""
    build: bool | None
    """Whether it can be built there; None if unknown."""
    run: bool | None
    """Whether the result runs there; None if unknown."""
    findings: tuple[Finding, ...]
    """The findings of all rules."""
    pytorch: str
    """The PyTorch version that is judged, or an empty string."""
    lock_problem: str
    """Why the lock was not judged, or an empty string."""
    gpus: tuple[GpuVerdict, ...] = ()
    """The verdicts for each kind of GPU."""
    cuda: Version | None = None
    """The CUDA release that the target is built with; None without CUDA."""
    driver: DriverVerdict = DriverVerdict(Verdict.UNKNOWN)
    """How the host's driver supports it."""

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


@dataclass(frozen=True, slots=True)
class GpuFindings:
    """One kind of GPU with the findings of the rules about GPUs that a host with it alone would have."""

    gpu: KnownGpu
    """The GPU."""
    count: int
    """How many of them the host has."""
    found: tuple[tuple[Scope, Finding], ...] | None
    """The findings, each with the verdict that its rule decides; None if all GPUs are of this kind, so that the
    findings about the host hold for it."""


class _WithGpu:
    """A host report with one of its GPUs."""

    def __init__(self, host: HostReport, gpu: Gpu) -> None:
        self._host = host
        gpus = host.gpus
        self.gpus = gpus if isinstance(gpus, Missing) else replace(gpus, value=(gpu,))
        self.every_gpu = gpus

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


def about_gpus(case: Case) -> tuple[GpuFindings, ...]:
    """Return the findings for each kind of GPU, in the order of the report; empty without a GPU."""
    if isinstance(case.host.gpus, Missing):
        return ()
    kinds: dict[KnownGpu, list[Gpu]] = {}
    for gpu in case.host.gpus.value:
        kinds.setdefault(identify(gpu, case.facts), []).append(gpu)
    if len(kinds) == 1:
        return tuple(GpuFindings(kind, len(gpus), None) for kind, gpus in kinds.items())
    return tuple(GpuFindings(kind, len(gpus), _alone(case, kind, gpus[0])) for kind, gpus in kinds.items())


def _alone(case: Case, kind: KnownGpu, gpu: Gpu) -> tuple[tuple[Scope, Finding], ...]:
    """Return the findings of a host with one GPU, which the list that activation sets for all of them may cover."""
    alone = replace(case, host=cast("HostReport", _WithGpu(case.host, gpu)))
    cases = [alone]
    if listed := listed_archs(case):
        beside = replace(alone, arch_list=";".join(map(str, listed)))
        cases = [beside] if is_covered(kind, listed) else [alone, beside]
    found = [(rule.scope, one) for each in cases for rule in GPU_RULES for one in rule(each)]
    return tuple(dict.fromkeys(found))


def per_gpu(
    kinds: Iterable[GpuFindings], found: Iterable[tuple[Scope, Finding]], common: Iterable[tuple[Scope, Finding]]
) -> tuple[GpuVerdict, ...]:
    """Return the verdicts for each kind of GPU.

    Args:
        kinds: The findings for each kind of GPU.
        found: All findings about the host.
        common: The findings of the rules that are not about GPUs.
    """
    every, shared = tuple(found), tuple(common)

    def of(kind: GpuFindings) -> GpuVerdict:
        own = every if kind.found is None else (*shared, *kind.found)
        build, run = decide(Scope.BUILD, own), decide(Scope.RUN, own)
        return GpuVerdict(kind.gpu.name, kind.gpu.capability, kind.count, build, run)

    return tuple(map(of, kinds))


def settled(found: Iterable[tuple[Scope, Finding]], kinds: Iterable[GpuFindings]) -> tuple[tuple[Scope, Finding], ...]:
    """Return the findings about driver, loader and GPUs; a warning is an error if no GPU is left that runs.

    Two rules may each warn of one GPU since the other GPU remains. If each GPU has an error of its own, none remains.
    """
    every = tuple(found)
    own = [kind.found for kind in kinds if kind.found is not None]
    if not own or decide(Scope.RUN, every) is False or any(decide(Scope.RUN, one) is not False for one in own):
        return every
    errors = {
        finding.code
        for one in own
        for scope, finding in one
        if finding.severity is Severity.ERROR and scope is not Scope.BUILD
    }
    return tuple(
        (scope, replace(one, severity=Severity.ERROR))
        if one.code in errors and one.severity is Severity.WARNING
        else (scope, one)
        for scope, one in every
    )


@dataclass(frozen=True, slots=True)
class Answers:
    """The findings about a target on a host, before the verdicts are derived."""

    platform: str
    """The platform that is judged."""
    found: Mapping[Rule, tuple[Finding, ...]]
    """The findings of each rule, in the order of the rules."""
    gpus: tuple[GpuFindings, ...]
    """The findings for each kind of GPU."""
    cuda: Version | None
    """The CUDA release that the target is built with; None without CUDA."""
    driver: DriverVerdict
    """How the host's driver supports it."""


def ask(case: Case, rules: Iterable[Rule]) -> Answers:
    """Return the findings of rules about a case."""
    found = {rule: tuple(rule(case)) for rule in rules}
    of_driver = next((one for every in found.values() for one in every if one.code in CODES), None)
    return Answers(case.platform, found, about_gpus(case), cuda_of(case), verdict_of(case, of_driver))


def conclude(asked: Answers, target: str = "", pytorch: str = "", lock_problem: str = "") -> Verdicts:
    """Derive the verdicts from the findings.

    A verdict is "no" if an error decides it, else "unknown" if a finding leaves it open.

    Args:
        asked: The findings.
        target: The target's name.
        pytorch: The PyTorch version that is judged, or an empty string.
        lock_problem: Why the lock was not judged, or an empty string.
    """
    kinds = asked.gpus
    pairs = [(rule, one) for rule, every in asked.found.items() for one in every]
    common = [(rule.scope, one) for rule, one in pairs if rule not in GPU_RULES]
    found = settled(((rule.scope, one) for rule, one in pairs), kinds)
    if foreign := [one for one in found if one[1].code == PLATFORM]:
        found, common = tuple(foreign), foreign  # the manifest's requirements are for another platform
        kinds = tuple(replace(kind, found=()) for kind in kinds)
    return Verdicts(
        target=target,
        platform=asked.platform,
        build=decide(Scope.BUILD, found),
        run=decide(Scope.RUN, found),
        findings=tuple(finding for _, finding in found),
        pytorch=pytorch,
        lock_problem=lock_problem,
        gpus=per_gpu(kinds, found, common),
        cuda=asked.cuda,
        driver=asked.driver,
    )


class Judge:
    """A target with everything that its verdicts depend on except the host. One serves many hosts.

    Attributes:
        lock: The target's lock; None if it is not judged.
        lock_problem: Why it is not judged, or an empty string.
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
            exported: The build switches of PyTorch and the flags of nvcc in the caller's environment.
        """
        self._target = target
        self._source = source
        self._facts = facts
        self._arch_list = arch_list
        self._activated = activated
        self._there = there
        self._exported = exported or {}
        self.lock, self.lock_problem = find_lock(target, lock) if locked else (None, "it is not judged")
        self._on: dict[str, tuple[Manifest, str]] = {}

    def __call__(self, host: HostReport) -> Verdicts:
        """Return the verdicts on a host by every rule."""
        return self.conclude(self.ask(host))

    def ask(self, host: HostReport) -> Answers:
        """Return the findings of every rule about a host."""
        return ask(self.case(host), RULES)

    def conclude(self, asked: Answers) -> Verdicts:
        """Derive the verdicts from the findings."""
        return conclude(asked, self._target.name, self._source.version.value if self._source else "", self.lock_problem)

    def unfit_pythons(self, host: HostReport) -> tuple[str, ...]:
        """Return the Python minors of the target that the revision can't be built with; empty if it supports none."""
        return unfit_pythons(self.case(host))

    def case(self, host: HostReport) -> Case:
        """Return the input of the rules."""
        platform = platform_of(host)
        if platform not in self._on:
            manifest = self._target.manifest.on(platform)
            self._on[platform] = (manifest, named_archs(manifest, self._arch_list))
        manifest, named = self._on[platform]
        about = (self.lock, host, self._source, self._facts, named, self._activated, self._there, self._exported)
        return Case(manifest, platform, *about)


def platform_of(host: HostReport) -> str:
    """Return the platform of a host; the platform of this machine if it is unknown."""
    return host.platform.value if isinstance(host.platform, Fact) else current_platform()


def find_lock(target: Target, lock: Lock | None = None) -> tuple[Lock | None, str]:
    """Return a lock, or why it can't be read; `lock` if the caller has read it."""
    try:
        return lock or read_lock(target.lock_file, target.name), ""
    except TenvError as error:
        return None, error.message
