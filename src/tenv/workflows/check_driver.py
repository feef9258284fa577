"""Compare a driver with what targets need: that of this machine, of another one, or of a whole fleet."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tenv.errors import ManifestError
from tenv.facts.cuda_driver import CudaDriverTable, ForwardVerdict
from tenv.facts.tables import Facts
from tenv.host.driver import probe
from tenv.host.interface import Fact, Missing
from tenv.host.machine import current_platform
from tenv.host.places import Places
from tenv.host.report import HostReport
from tenv.host.system import host_platform, wsl
from tenv.rules.common import cuda_on, identify
from tenv.rules.driver import DriverVerdict, Verdict, judge
from tenv.targets import Target
from tenv.versions import Version
from tenv.workflows.context import Context
from tenv.workflows.facts import user_facts
from tenv.workflows.fleet import Asked, Memo, ask, refuse_host_options
from tenv.workflows.host import HostOptions, report

__all__ = ["Report", "Row", "check", "check_fleet", "find_targets", "judge_host", "newest_toolkits"]


@dataclass(frozen=True, slots=True)
class Row:
    """The verdict on one target or one release of the toolkit.

    Attributes:
        target: The target's name; empty for a toolkit.
        cuda: The CUDA release, or None.
        verdict: The verdict.
    """

    target: str
    cuda: Version | None
    verdict: DriverVerdict

    @property
    def minimum(self) -> str:
        """The oldest driver that will do; empty when none is needed or known."""
        return str(self.verdict.minimum.driver) if self.verdict.minimum else ""

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return {
            "target": self.target,
            "cuda": str(self.cuda or ""),
            "verdict": self.verdict.verdict.value,
            "minimum_driver": self.minimum,
            "build": True,
            "run": self.verdict.run,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """A driver against targets.

    Attributes:
        driver: The driver, or why none is known.
        rows: The verdict on each target.
        toolkits: The verdict on each release of the CUDA toolkit; empty when one target was asked about.
    """

    driver: Fact[Version] | Missing
    rows: tuple[Row, ...]
    toolkits: tuple[Row, ...] = ()

    def driver_text(self) -> str:
        """Return the driver in words."""
        if isinstance(self.driver, Missing):
            return f"not found ({self.driver.reason})"
        return f"{self.driver.value} (by {self.driver.origin})"

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        driver = (
            {"missing": self.driver.reason}
            if isinstance(self.driver, Missing)
            else {"value": str(self.driver.value), "origin": self.driver.origin}
        )
        toolkits = [row.to_json() for row in self.toolkits]
        for row in toolkits:
            del row["target"]
        return {"driver": driver, "targets": [row.to_json() for row in self.rows], "toolkits": toolkits}


def check(context: Context, name: str | None, options: HostOptions | None = None) -> Report:
    """Return the verdict on a target; without one, on every target that can be read and every toolkit.

    Args:
        context: Where things are found.
        name: The target.
        options: Which host is meant, where it is not this one.
    """
    targets = find_targets(context, name)
    facts = user_facts(context)
    if (options or HostOptions()) == HostOptions() and any(_takes_toolkit(target) for target in targets):
        return _judge_all(report(context, HostOptions()), targets, facts, with_toolkits=not name)
    if options and options != HostOptions():
        return _judge_all(report(context, options), targets, facts, with_toolkits=not name)
    found = _judge_all(_probed(), targets, facts, with_toolkits=not name)
    if any(_asks_for_gpus(row, found.driver, facts.cuda_driver) for row in (*found.rows, *found.toolkits)):
        return _judge_all(report(context, HostOptions()), targets, facts, with_toolkits=not name)
    return found


def _judge_all(host: HostReport, targets: Iterable[Target], facts: Facts, with_toolkits: bool) -> Report:
    rows = tuple(_row(target, host, facts) for target in targets)
    toolkits = newest_toolkits(facts.cuda_driver) if with_toolkits else ()
    return Report(host.driver, rows, tuple(Row("", cuda, judge_host(cuda, host, facts)) for cuda in toolkits))


def _takes_toolkit(target: Target) -> bool:
    """Tell whether the machine's toolkit decides which CUDA a target is built with."""
    manifest = target.manifest.on(current_platform())
    return "cuda-toolkit" in manifest.system and manifest.requirements.cuda is None


def _asks_for_gpus(row: Row, driver: Fact[Version] | Missing, table: CudaDriverTable) -> bool:
    """Tell whether the GPUs decide: the driver is too old, and there is a cuda-compat package for it."""
    if row.cuda is None or isinstance(driver, Missing) or row.verdict.verdict is not Verdict.IMPOSSIBLE:
        return False
    forward = table.forward(row.cuda, driver.value)
    return forward is not None and forward.verdict is ForwardVerdict.COMPATIBLE


def check_fleet(context: Context, name: str | None, path: Path, options: HostOptions) -> Iterator[Asked[Row]]:
    """Yield the verdicts for each machine of a fleet, on a target or on every target that can be read.

    Args:
        context: Where things are found.
        name: The target.
        path: The file or the folder with the host reports.
        options: Must name no other host.

    Raises:
        UsageError: There is no report, or another host is named too.
    """
    refuse_host_options(options)
    facts = user_facts(context)
    questions = [Memo(partial(_row, target, facts=facts)) for target in find_targets(context, name)]
    return ask(path, lambda host: tuple(question(host) for question in questions))


def judge_host(cuda: Version | None, host: HostReport, facts: Facts) -> DriverVerdict:
    """Return how a host's driver stands to a toolkit."""
    on_windows = isinstance(host.platform, Fact) and host.platform.value.startswith("win-")
    windows = on_windows or (isinstance(host.wsl, Fact) and host.wsl.value)
    judged = judge(cuda, host.driver, facts.cuda_driver, windows)
    if judged.verdict is not Verdict.IMPOSSIBLE or isinstance(host.gpus, Missing):
        return judged  # the tables of GPUs are not read
    gpus = [identify(gpu, facts).kind for gpu in host.gpus.value]
    return judge(cuda, host.driver, facts.cuda_driver, windows, gpus)


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
    platform = host.platform.value if isinstance(host.platform, Fact) else ""
    cuda = cuda_on(target.manifest.on(platform), host)
    return Row(target.name, cuda, judge_host(cuda, host, facts))


def _probed() -> HostReport:
    """Return a report on this machine in which only what a driver is judged by was asked for."""
    nothing = HostReport.from_json({"schema": 1})
    places = Places()
    return replace(nothing, driver=probe(places), wsl=wsl(places), platform=host_platform(places))


def _all_targets(context: Context) -> Iterator[Target]:
    for name in context.places.names():
        try:
            yield context.places.find(name)
        except ManifestError:
            continue
