"""Select the target for a pasted report: the one with the CUDA that the report's PyTorch was built with."""

import re
from collections.abc import Iterator
from typing import Any

from tenv.checks.choose_target import rank
from tenv.checks.host_options import HostOptions, read, report
from tenv.checks.judge import platform_of
from tenv.checks.judge_targets import newest_toolkits
from tenv.checks.rules.driver import judge_on_host
from tenv.checks.rules.interface import Scope, decide
from tenv.core.dataclass import dataclass
from tenv.core.errors import HostReportError, ManifestError, UsageError
from tenv.core.versions import Version
from tenv.facts.tables import Facts
from tenv.host.interface import Fact
from tenv.host.report import HostReport
from tenv.project.context import Context
from tenv.targets.manifest import Manifest
from tenv.targets.search import Target
from tenv.targets.toolkit_kind import ToolkitKind, toolkit_kind

_WITHOUT_CUDA = re.compile(r"\+cpu\b")


@dataclass(frozen=True, slots=True)
class FromReport:
    """The selected target."""

    target: str
    """Its name."""
    cuda: str
    """The CUDA that the report's PyTorch was built with; empty without CUDA."""
    reason: str
    """Why it was selected."""
    options: HostOptions
    """The options with the report's content, so that the file is read once."""

    def to_json(self) -> dict[str, str]:
        """Return the choice as JSON values."""
        return {"target": self.target, "cuda": self.cuda, "reason": self.reason}

    def line(self) -> str:
        """Return the choice as text."""
        return f"target: {self.target}, since {self.reason}"


@dataclass(frozen=True, slots=True)
class _Known:
    target: Target
    manifest: Manifest
    runs: bool

    @property
    def cuda(self) -> Version | None:
        return self.manifest.requirements.cuda


@dataclass(frozen=True, slots=True)
class _Asked:
    """The report's PyTorch: its CUDA (None without), the line that names it, and its version."""

    cuda: Version | None
    place: str
    pytorch: str


def from_report(context: Context, options: HostOptions) -> FromReport:
    """Select the target for the PyTorch of a report.

    Args:
        context: Where targets are found.
        options: Which host to judge; they must name a report.

    Raises:
        UsageError: No report is named, or no target supports its platform.
        HostReportError: The report is unreadable, or does not name the CUDA that its PyTorch was built with.
    """
    if not options.host_report:
        raise UsageError("`--target-from-report` needs a report", hint="pass one: `--host-report FILE`")
    options = read(options)
    pasted = options.given.pasted if options.given else {}
    host, facts = report(context, options), context.facts()
    asked = _asked(pasted, options.host_report)
    targets = [one for one in _targets(context, host, facts) if (one.cuda is None) is (asked.cuda is None)]
    if not targets:
        kind = "with" if asked.cuda else "without"
        raise UsageError(f"no target {kind} CUDA is for {platform_of(host)}", hint="`tenv targets` lists the targets")
    taken, reason = _take(targets, asked, host, facts)
    return FromReport(taken.target.name, str(asked.cuda or ""), reason, options)


def _asked(pasted: dict[str, Any], source: str) -> _Asked:
    """Return the CUDA that the report's PyTorch was built with."""
    said, pytorch = (_answer(pasted, name) for name in ("pytorch_cuda", "pytorch"))
    value, release = said.get("value"), str(pytorch.get("value", ""))
    if isinstance(value, str) and re.fullmatch(r"\d{1,3}(\.\d{1,4}){1,3}", value, re.ASCII):
        return _Asked(Version(Version(value).major_minor), str(said.get("origin", "")), release)
    if _WITHOUT_CUDA.search(release):
        return _Asked(None, str(pytorch.get("origin", "")), release)
    why = said.get("missing") or "it is not a pasted report"
    raise HostReportError(
        f"{source}: does not name the CUDA that its PyTorch was built with: {why}",
        hint="name a TARGET (`tenv targets` lists them), or let `tenv create auto` select one",
    )


def _answer(pasted: dict[str, Any], name: str) -> dict[str, Any]:
    found = pasted.get(name)
    return found if isinstance(found, dict) else {}


def _targets(context: Context, host: HostReport, facts: Facts) -> Iterator[_Known]:
    """Yield the targets for the host's platform that bring their own CUDA or need none."""
    platform = platform_of(host)
    for name in context.places.names():
        try:
            target = context.places.find(name)
        except ManifestError:
            continue
        manifest = target.manifest.on(platform)
        if (not manifest.platforms or platform in manifest.platforms) and _settled(manifest):
            yield _Known(target, manifest, _runs(manifest, host, facts))


def _runs(manifest: Manifest, host: HostReport, facts: Facts) -> bool:
    """Return whether the driver runs the target's CUDA."""
    finding = judge_on_host(manifest.requirements.cuda, host, facts, manifest)
    return decide(Scope.RUN, [(Scope.RUN, finding)] if finding else []) is True


def _settled(manifest: Manifest) -> bool:
    return manifest.requirements.cuda is not None or "cuda-toolkit" not in manifest.system


def _take(targets: list[_Known], asked: _Asked, host: HostReport, facts: Facts) -> tuple[_Known, str]:
    """Return the selected target and the reason."""
    words = f"CUDA {asked.cuda}" if asked.cuda else "no CUDA"
    built = f"which the report's PyTorch was built with ({asked.place})"
    same = [one for one in targets if _same(one.cuda, asked.cuda)]
    if len(same) == 1:
        return same[0], f"it has {words}, {built}"
    running = [one for one in same or targets if one.runs]
    order = [toolkit.major_minor for toolkit in newest_toolkits(facts.cuda_driver)]

    def near(one: _Known) -> Any:
        # A report seldom names everything that a target without conda resolves from the host: compiler, Python.
        whole = bool(one.manifest.dependencies) or toolkit_kind(one.manifest) is not ToolkitKind.ARCHIVES
        return -_distance(one.cuda, asked.cuda, order), _made_for(one, asked), whole, rank((one.target, one.manifest))

    best = max(running or same or targets, key=near)
    if isinstance(host.driver, Fact):
        driver = f"driver {host.driver.value}"
        runs = f" that {driver} runs" if running else f", although {driver} runs none of them"
    else:
        runs = ", although the report names no driver"
    if not asked.cuda:
        runs = ""
    if same:
        names = ", ".join(f"`{one.target.name}`" for one in same)
        return best, f"{names} have {words}, {built}, and it is the nearest{runs}"
    return best, f"no target has {words}, {built}, and CUDA {best.cuda} is the nearest{runs}"


def _same(one: Version | None, other: Version | None) -> bool:
    return (one.major_minor if one else None) == (other.major_minor if other else None)


def _made_for(one: _Known, asked: _Asked) -> bool:
    """Return whether a target supports the PyTorch release that the report names."""
    release = Version.find(asked.pytorch)
    return release is None or one.manifest.pytorch is None or str(release) in one.manifest.pytorch


def _distance(one: Version | None, other: Version | None, order: list[str]) -> int:
    """Return how many toolkit releases lie between two; a release outside the table counts by its number."""
    if one is None or other is None:
        return 0
    places = [order.index(cuda.major_minor) if cuda.major_minor in order else None for cuda in (one, other)]
    if places[0] is None or places[1] is None:
        return abs((one.major - other.major) * 10 + one.minor - other.minor)
    return abs(places[0] - places[1])
