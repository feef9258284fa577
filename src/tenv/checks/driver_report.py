"""Compare a driver with what targets need: that of this machine, of another one, or of a whole fleet."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenv.checks.host_options import HostOptions, report
from tenv.checks.rules.common import cuda_on, identify, takes_toolkit
from tenv.checks.rules.driver import DriverVerdict, Verdict, driver_of, judge, of_windows, useless_override
from tenv.checks.rules.from_machine import PLATFORM, lacking_toolkit, other_platform
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.errors import ManifestError
from tenv.core.threads import ahead
from tenv.core.versions import Version
from tenv.facts.cuda_driver import CudaDriverTable, ForwardVerdict
from tenv.facts.tables import Facts
from tenv.host import gpus, toolkits
from tenv.host.cuda_api import override
from tenv.host.driver import probe
from tenv.host.interface import Fact, Missing, fact_to_json
from tenv.host.machine import current_platform
from tenv.host.nvidia import Nvidia
from tenv.host.places import Places
from tenv.host.report import HostReport
from tenv.host.system import host_platform, wsl
from tenv.project.context import Context
from tenv.project.user_facts import user_facts
from tenv.targets.manifest import Manifest
from tenv.targets.search import Target

if TYPE_CHECKING:
    from tenv.checks.fleet import Asked

__all__ = ["Report", "Row", "check", "check_fleet", "find_targets", "judge_host", "judge_target", "newest_toolkits"]


@dataclass(frozen=True, slots=True)
class Row:
    """The verdict on one target or one release of the toolkit.

    Attributes:
        target: The target's name; empty for a toolkit.
        cuda: The CUDA release, or None.
        verdict: The verdict.
        obstacle: What the manifest alone has against the machine: its platform, or that it lacks the CUDA toolkit that
            the target takes from it.
    """

    target: str
    cuda: Version | None
    verdict: DriverVerdict
    obstacle: Finding | None = None

    @property
    def minimum(self) -> str:
        """The oldest driver that will do; empty when none is needed or known."""
        return str(self.verdict.minimum.driver) if self.verdict.minimum else ""

    @property
    def build(self) -> bool:
        """Whether nothing that can be told so fast is against building it there; `check` asks every rule."""
        return self.obstacle is None or self.obstacle.severity is not Severity.ERROR

    @property
    def run(self) -> bool:
        """Whether this driver is known to run what it builds."""
        return self.verdict.run

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What there is to say about it; of a target for other platforms that alone."""
        told = (self.obstacle,) if self._foreign else (self.obstacle, self.verdict.finding)
        return tuple(dict.fromkeys(finding for finding in told if finding is not None))

    @property
    def _foreign(self) -> bool:
        return self.obstacle is not None and self.obstacle.code == PLATFORM

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return {
            "target": self.target,
            "cuda": str(self.cuda or ""),
            "verdict": self.verdict.verdict.value,
            "minimum_driver": self.minimum,
            "native_driver": str(self.verdict.native.driver) if self.verdict.native else "",
            "build": self.build,
            "run": self.run,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """A driver against targets.

    Attributes:
        driver: The driver that is judged (see `driver_of`), or why none is known.
        rows: The verdict on each target.
        toolkits: The verdict on each release of the CUDA toolkit; empty when one target was asked about.
        findings: What there is to say about the driver whatever is asked about.
    """

    driver: Fact[Version] | Missing
    rows: tuple[Row, ...]
    toolkits: tuple[Row, ...] = ()
    findings: tuple[Finding, ...] = ()

    def driver_text(self) -> str:
        """Return the driver in words."""
        if isinstance(self.driver, Missing):
            return f"not found ({self.driver.reason})"
        return f"{self.driver.value} ({self.driver.origin})"

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        toolkits = [row.to_json() for row in self.toolkits]
        for row in toolkits:
            del row["target"], row["build"]  # a release alone is not built
        targets = [row.to_json() for row in self.rows]
        return {"driver": fact_to_json(self.driver), "targets": targets, "toolkits": toolkits}


def check(context: Context, name: str | None, options: HostOptions | None = None) -> Report:
    """Return the verdict on a target; without one, on every target that can be read and every toolkit.

    Args:
        context: Where things are found.
        name: The target.
        options: Which host is meant, where it is not this one.
    """
    if options and options != HostOptions():
        return _judge_all(report(context, options), find_targets(context, name), user_facts(context), not name)
    # nvcc answers while the manifests are read; among all targets there is one that takes the machine's toolkit.
    asked = None if name else ahead(partial(toolkits.probe, Places(environ=context.environ)))
    targets, facts = find_targets(context, name), user_facts(context)
    host = _probed(context)
    if any(map(_takes_toolkit, targets)):
        host = replace(host, toolkits=asked() if asked else toolkits.probe(Places(environ=context.environ)))
    found = _judge_all(host, targets, facts, with_toolkits=not name)
    if any(_asks_for_gpus(row, found.driver, facts.cuda_driver) for row in (*found.rows, *found.toolkits)):
        return _judge_all(report(context, HostOptions()), targets, facts, with_toolkits=not name)
    return found


def _judge_all(host: HostReport, targets: Iterable[Target], facts: Facts, with_toolkits: bool) -> Report:
    rows = tuple(_row(target, host, facts) for target in targets)
    releases = newest_toolkits(facts.cuda_driver) if with_toolkits else ()
    toolkits = tuple(Row("", cuda, judge_host(cuda, host, facts)) for cuda in releases)
    table, windows = facts.cuda_driver, of_windows(host)
    useless = useless_override(host, table, windows)
    return Report(driver_of(host, table, windows), rows, toolkits, (useless,) if useless else ())


def _takes_toolkit(target: Target) -> bool:
    """Tell whether a target takes the CUDA toolkit of the machine."""
    return "cuda-toolkit" in target.manifest.on(current_platform()).system


def _asks_for_gpus(row: Row, driver: Fact[Version] | Missing, table: CudaDriverTable) -> bool:
    """Tell whether the GPUs decide or are named in the fix.

    That is so where the driver is too old and there is a cuda-compat package for it, and where a target's code must be
    built for the GPUs' own architectures.
    """
    if row.cuda is None or isinstance(driver, Missing):
        return False
    if row.verdict.verdict is Verdict.MINOR_VERSION:
        return bool(row.target)
    forward = table.forward(row.cuda, driver.value) if row.verdict.verdict is Verdict.IMPOSSIBLE else None
    return forward is not None and forward.verdict is ForwardVerdict.COMPATIBLE


def check_fleet(context: Context, name: str | None, path: Path, options: HostOptions) -> "Iterator[Asked[Row]]":
    """Yield the verdicts for each machine of a fleet, on a target or on every target that can be read.

    Args:
        context: Where things are found.
        name: The target.
        path: The file or the folder with the host reports.
        options: Must name no other host.

    Raises:
        UsageError: There is no report, or another host is named too.
    """
    from tenv.checks.fleet import Memos, ask, refuse_host_options  # noqa: PLC0415 (late: one machine needs none)

    refuse_host_options(options)
    facts = user_facts(context)
    return ask(path, Memos(partial(_row, target, facts=facts) for target in find_targets(context, name)))


def judge_host(cuda: Version | None, host: HostReport, facts: Facts) -> DriverVerdict:
    """Return how a host's driver stands to a toolkit."""
    table, windows = facts.cuda_driver, of_windows(host)
    driver = driver_of(host, table, windows)
    judged = judge(cuda, driver, table, windows)
    if judged.verdict is Verdict.NATIVE or isinstance(host.gpus, Missing) or not host.gpus.value:
        return judged  # the tables of GPUs are not read
    gpus = [identify(gpu, facts) for gpu in host.gpus.value]
    return judge(cuda, driver, table, windows, gpus, facts.cuda_gpu_arch)


def judge_target(manifest: Manifest, host: HostReport, facts: Facts) -> DriverVerdict:
    """Return how a host's driver stands to what a target builds there.

    It is unknown where the target takes the toolkit of the host, and that has none.
    """
    cuda = cuda_on(manifest, host)
    if cuda is None and takes_toolkit(manifest):
        return DriverVerdict(Verdict.UNKNOWN, None, lacking_toolkit(manifest, host), run=False)
    return judge_host(cuda, host, facts)


def newest_toolkits(table: CudaDriverTable) -> tuple[Version, ...]:
    """Return the newest release of each minor version of the toolkit, newest first."""
    newest: dict[str, Version] = {}
    for row in table.toolkits:
        newest.setdefault(row.major_minor, row.toolkit)
    return tuple(newest.values())


def find_targets(context: Context, name: str | None) -> tuple[Target, ...]:
    """Return the target of a name; without one, every target that can be read (`tenv targets` tells why not)."""
    return (context.places.find(name),) if name else tuple(_all_targets(context))


def _row(target: Target, host: HostReport, facts: Facts) -> Row:
    platform = host.platform.value if isinstance(host.platform, Fact) else current_platform()
    manifest = target.manifest.on(platform)
    obstacle = other_platform(manifest, platform, host) or lacking_toolkit(manifest, host)
    return Row(target.name, cuda_on(manifest, host), judge_target(manifest, host, facts), obstacle)


def _probed(context: Context) -> HostReport:
    """Return a report on this machine in which only what targets' drivers are judged by was asked for."""
    nothing = HostReport.unknown()
    nvidia = Nvidia(Places(environ=context.environ))
    driver = probe(None, nvidia)
    return replace(
        nothing,
        driver=driver,
        cuda=override(context.environ) or nothing.cuda,
        gpus=nothing.gpus if isinstance(driver, Fact) else gpus.probe(None, nvidia),
        wsl=wsl(nvidia.places),
        platform=host_platform(nvidia.places),
    )


def _all_targets(context: Context) -> Iterator[Target]:
    for name in context.places.names():
        try:
            yield context.places.find(name)
        except ManifestError:
            continue
