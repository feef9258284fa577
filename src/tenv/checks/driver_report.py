"""Compare the driver of a host, or of each host of a fleet, with what targets require."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenv.checks.gpu_verdicts import GpuVerdict, about_gpus, per_gpu, settled
from tenv.checks.host_options import HostOptions, read, report, with_driver
from tenv.checks.rules.arch_list import VARIABLE, named_archs
from tenv.checks.rules.common import cuda_on, takes_toolkit
from tenv.checks.rules.compressed_code import nvcc_flags
from tenv.checks.rules.driver import DriverVerdict, Verdict
from tenv.checks.rules.driver_family import DRIVER_RULES, GPU_RULES
from tenv.checks.rules.driver_rules import stand
from tenv.checks.rules.from_machine import PLATFORM, SCOPES, lacking_toolkit, other_platform
from tenv.checks.rules.interface import Case, Finding, Rule, Scope, decide
from tenv.checks.rules.judged_driver import driver_of, useless_override
from tenv.core.dataclass import dataclass
from tenv.core.errors import ManifestError
from tenv.core.threads import ahead
from tenv.core.versions import Version
from tenv.facts.cuda_driver import CudaDriverTable
from tenv.facts.tables import Facts
from tenv.host import compat, cuda_api, gpus, toolkits
from tenv.host.cuda_api import override
from tenv.host.driver import driver_kind, jetson_linux, module, probe
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind, fact_to_json
from tenv.host.machine import current_platform
from tenv.host.nvidia import Nvidia
from tenv.host.places import Places
from tenv.host.report import HostReport
from tenv.host.scan import Scan
from tenv.host.system import container, host_platform, wsl
from tenv.project.context import Context
from tenv.project.user_facts import user_facts
from tenv.targets.manifest import Manifest, Requirements
from tenv.targets.search import Target

if TYPE_CHECKING:
    from tenv.checks.fleet import MachineVerdicts

__all__ = [
    "Report",
    "TargetVerdict",
    "check",
    "check_fleet",
    "find_targets",
    "judge_target",
    "newest_toolkits",
]


@dataclass(frozen=True, slots=True)
class TargetVerdict:
    """The verdict on one target or one release of the toolkit.

    Attributes:
        target: The target's name; empty for a toolkit.
        cuda: The CUDA release, or None.
        verdict: How the driver supports it.
        found: The findings, each with the verdict that an error of it decides: first those from the manifest alone,
            then those about the driver, the loader and the GPUs. A target for other platforms has only the finding
            about its platforms.
        gpus: The verdicts for each kind of GPU.
    """

    target: str
    cuda: Version | None
    verdict: DriverVerdict
    found: tuple[tuple[Scope, Finding], ...] = ()
    gpus: tuple[GpuVerdict, ...] = ()

    @property
    def minimum(self) -> str:
        """The oldest sufficient driver; empty if none is needed or known."""
        return str(self.verdict.minimum.driver) if self.verdict.minimum else ""

    @property
    def build(self) -> bool | None:
        """Whether no quick rule forbids building on the host; `check` applies every rule."""
        return decide(Scope.BUILD, self.found)

    @property
    def run(self) -> bool | None:
        """Whether driver, loader and GPUs run what the target builds; None if unknown."""
        return decide(Scope.RUN, self.found)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings about the row."""
        return tuple(dict.fromkeys(finding for _, finding in self.found))

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {
            "target": self.target,
            "cuda": str(self.cuda or ""),
            "verdict": self.verdict.verdict.value,
            "minimum_driver": self.minimum,
            "native_driver": str(self.verdict.native.driver) if self.verdict.native else "",
            "build": self.build,
            "run": self.run,
            "gpus": [gpu.to_json() for gpu in self.gpus],
        }


@dataclass(frozen=True, slots=True)
class Report:
    """A driver compared with targets.

    Attributes:
        driver: The judged driver (see `driver_of`), or why none is known.
        rows: The verdict on each target.
        toolkits: The verdict on each release of the CUDA toolkit; empty if a target was named.
        findings: The findings about the driver that hold for all targets.
    """

    driver: Fact[Version] | Missing
    rows: tuple[TargetVerdict, ...]
    toolkits: tuple[TargetVerdict, ...] = ()
    findings: tuple[Finding, ...] = ()

    def driver_text(self) -> str:
        """Return the driver as text."""
        if isinstance(self.driver, Missing):
            return f"not found ({self.driver.reason})"
        return f"{self.driver.value} ({self.driver.origin})"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        toolkits = [row.to_json() for row in self.toolkits]
        for row in toolkits:
            del row["target"], row["build"], row["gpus"]  # a release alone has no build verdict
        targets = [row.to_json() for row in self.rows]
        return {"driver": fact_to_json(self.driver), "targets": targets, "toolkits": toolkits}


def check(context: Context, name: str | None, options: HostOptions | None = None) -> Report:
    """Return the verdict on a target; without a name, on every readable target and every toolkit.

    Args:
        context: Where things are found.
        name: The target.
        options: Which host is meant, where it is not this one.
    """
    if options and options != HostOptions():
        options = read(options)
        targets = find_targets(with_driver(context, options), name)
        return _judge_all(context, report(context, options), targets, user_facts(context), not name)
    # nvcc runs while the manifests are read: one of the targets uses the host's toolkit.
    asked = None if name else ahead(partial(toolkits.probe, Places(environ=context.environ)))
    targets, facts = find_targets(context, name), user_facts(context)
    host = _probed(context)
    if any(map(_takes_toolkit, targets)):
        host = replace(host, toolkits=asked() if asked else toolkits.probe(Places(environ=context.environ)))
    return _judge_all(context, host, targets, facts, with_toolkits=not name)


def _judge_all(
    context: Context, host: HostReport, targets: Iterable[Target], facts: Facts, with_toolkits: bool
) -> Report:
    archs = context.environ.get(VARIABLE, "")
    flags = nvcc_flags(context.environ)
    rows = tuple(_row(target, host, facts, archs, flags) for target in targets)
    releases = newest_toolkits(facts.cuda_driver) if with_toolkits else ()
    toolkits = tuple(_of_toolkit(cuda, host, facts) for cuda in releases)
    useless, driver = useless_override(host, facts), driver_of(host, facts)
    if isinstance(driver, Fact) and isinstance(host.driver, Fact):
        driver = host.driver  # a Jetson is judged by a desktop driver with the same CUDA
    return Report(driver, rows, toolkits, (useless,) if useless else ())


def _takes_toolkit(target: Target) -> bool:
    """Return whether a target resolves the CUDA toolkit from the system."""
    return "cuda-toolkit" in target.manifest.on(current_platform()).system


def check_fleet(
    context: Context, name: str | None, path: Path, options: HostOptions
) -> "Iterator[MachineVerdicts[TargetVerdict]]":
    """Yield the verdicts for each host of a fleet, on a target or on every readable target.

    Args:
        context: Where things are found.
        name: The target.
        path: A file or a folder of host reports.
        options: Host options, which must name no other host.

    Raises:
        UsageError: There is no report, or the options name another host.
    """
    from tenv.checks.fleet import ask, refuse_host_options  # late: only a fleet needs it
    from tenv.checks.memos import Memos

    refuse_host_options(options)
    facts = user_facts(context)
    archs = context.environ.get(VARIABLE, "")
    judges = partial(_row, facts=facts, archs=archs, flags=nvcc_flags(context.environ))
    memos = Memos(partial(judges, target) for target in find_targets(context, name))
    return ask(path, memos, memos)


def judge_target(manifest: Manifest, host: HostReport, facts: Facts) -> DriverVerdict:
    """Return how a host's driver supports what a target builds there.

    The verdict is unknown if the target uses the host's toolkit and the host has none.
    """
    cuda = cuda_on(manifest, host)
    if cuda is None and takes_toolkit(manifest):
        return DriverVerdict(Verdict.UNKNOWN, None, lacking_toolkit(manifest, host))
    return stand(cuda, host, facts, manifest)


def newest_toolkits(table: CudaDriverTable) -> tuple[Version, ...]:
    """Return the newest release of each minor version of the toolkit, newest first."""
    newest: dict[str, Version] = {}
    for row in table.toolkits:
        newest.setdefault(row.major_minor, row.toolkit)
    return tuple(newest.values())


def find_targets(context: Context, name: str | None) -> tuple[Target, ...]:
    """Return the named target; without a name, every readable target (`tenv targets` reports the others)."""
    return (context.places.find(name),) if name else tuple(_all_targets(context))


def _row(target: Target, host: HostReport, facts: Facts, archs: str, flags: Mapping[str, str]) -> TargetVerdict:
    platform = host.platform.value if isinstance(host.platform, Fact) else current_platform()
    manifest = target.manifest.on(platform)
    obstacle = other_platform(manifest, platform, host) or lacking_toolkit(manifest, host)
    cuda, verdict = cuda_on(manifest, host), judge_target(manifest, host, facts)
    foreign = obstacle is not None and obstacle.code == PLATFORM
    own = ((SCOPES[obstacle.code], obstacle),) if obstacle else ()
    case = Case(manifest, platform, None, host, None, facts, named_archs(manifest, archs), exported=flags)
    kinds = about_gpus(case)
    if foreign:
        kinds = tuple(replace(kind, found=()) for kind in kinds)
    asked = () if foreign else _asked(case)
    found = settled((*own, *((rule.scope, one) for rule, one in asked)), kinds)
    common = (*own, *((rule.scope, one) for rule, one in asked if rule not in GPU_RULES))
    return TargetVerdict(target.name, cuda, verdict, found, per_gpu(kinds, found, common))


def _of_toolkit(cuda: Version, host: HostReport, facts: Facts) -> TargetVerdict:
    """Return the verdict on a release of the toolkit, judged as a target with nothing else."""
    platform = host.platform.value if isinstance(host.platform, Fact) else current_platform()
    alone = Case(Manifest("", "", requirements=Requirements(cuda, None)), platform, None, host, None, facts)
    asked = ((rule.scope, one) for rule, one in _asked(alone))
    return TargetVerdict("", cuda, stand(cuda, host, facts), settled(asked, about_gpus(alone)))


def _asked(case: Case) -> tuple[tuple[Rule, Finding], ...]:
    """Return the findings about driver, loader and GPUs, each with its rule."""
    if cuda_on(case.manifest, case.host) is None:
        return ()
    return tuple((rule, finding) for rule in DRIVER_RULES for finding in rule(case))


def _probed(context: Context) -> HostReport:
    """Return a host report of this machine with only the values that rules about drivers read.

    The driver's tools run once for all values; the other values come from files.
    """
    nothing, scan = HostReport.unknown(), Scan(Places(environ=context.environ))
    driver = probe(None, scan.nvidia)
    return replace(
        nothing,
        driver=driver,
        module=module(scan.places),
        driver_kind=driver_kind(scan.places),
        l4t=jetson_linux(scan.places),
        cuda=_offered(context, driver, scan.nvidia) or nothing.cuda,
        compat=compat.probe(scan.loader, driver),
        gpus=gpus.probe(None, scan.nvidia),
        wsl=wsl(scan.places),
        container=container(scan.places),
        platform=host_platform(scan.places),
    )


def _offered(context: Context, driver: Fact[Version] | Missing, nvidia: Nvidia) -> Fact[Version] | Missing | None:
    """Return the CUDA that the driver offers if its version does not determine it; on a Jetson, libcuda is asked."""
    if (said := override(context.environ)) is not None:
        return said
    if isinstance(driver, Missing) and driver.kind is ReasonKind.JETSON:
        return cuda_api.probe(None, nvidia)
    reported = nvidia.nvml if isinstance(nvidia.nvml, Missing) else nvidia.nvml.cuda
    return Fact(reported, "NVML", OriginKind.NVML) if isinstance(reported, Version) else None


def _all_targets(context: Context) -> Iterator[Target]:
    for name in context.places.names():
        try:
            yield context.places.find(name)
        except ManifestError:
            continue
