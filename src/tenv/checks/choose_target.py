"""Choose the best target for a machine and a PyTorch revision, and say why the others fell out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tenv.checks.before_create import Surroundings
from tenv.checks.driver_report import judge_target
from tenv.checks.judge import Judge, Verdicts
from tenv.checks.rules.common import cuda_on, takes_toolkit
from tenv.checks.rules.driver import Verdict
from tenv.checks.rules.driver_findings import FORWARD
from tenv.checks.rules.gpu import TOO_NEW, TOO_OLD
from tenv.checks.rules.interface import Finding, Scope, Severity
from tenv.checks.rules.judged_driver import driver_of, useless_override
from tenv.core.errors import ManifestError, NoTargetError, UsageError
from tenv.core.versions import Version
from tenv.host.interface import Fact, Missing, ReasonKind
from tenv.host.machine import current_platform
from tenv.host.report import HostReport
from tenv.project.context import Context
from tenv.targets.manifest import Manifest
from tenv.targets.search import AUTO, Target
from tenv.targets.toolkit_kind import ToolkitKind, toolkit_kind

__all__ = ["Candidate", "TargetChoice", "choose", "rank"]

_NO_CUDA = Version("0")
_ANY_REVISION = Version("99")
_HOW = {
    Verdict.NATIVE: "natively",
    Verdict.MINOR_VERSION: "by minor-version compatibility",
    Verdict.FORWARD: "by forward compatibility",
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A target that was looked at.

    Attributes:
        target: Its name.
        cuda: Its CUDA release; None without CUDA, and where it takes the machine's and there is none.
        gpu: Whether it is one with CUDA.
        verdict: How the driver stands to it.
        suits: Whether it can be built here, and runs here.
        reason: What speaks for it, or what is against it.
        fix: What to do about that, or an empty string.
    """

    target: str
    cuda: Version | None
    gpu: bool
    verdict: Verdict
    suits: bool
    reason: str
    fix: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the candidate as plain values."""
        return {
            "target": self.target,
            "cuda": str(self.cuda or ""),
            "verdict": self.verdict.value,
            "suits": self.suits,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """The target that was chosen.

    Attributes:
        target: Its name.
        reason: Why it is the one.
        ranking: Every target that was looked at, best first.
        better: Those that would have been better, had nothing been against them.
    """

    target: str
    reason: str
    ranking: tuple[Candidate, ...]
    better: tuple[Candidate, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the choice as plain values."""
        return {
            "target": self.target,
            "reason": self.reason,
            "ranking": [candidate.to_json() for candidate in self.ranking],
        }

    def lines(self) -> Iterator[str]:
        """Yield the choice in words: why it was taken, and why not what would have been better."""
        yield f"{AUTO}: {self.target}, since {self.reason}"
        for candidate in self.better:
            yield f"{AUTO}: not {candidate.target}, since {candidate.reason}"


def choose(context: Context, around: Surroundings, say: Callable[[str], None]) -> TargetChoice:
    """Return the best target: with a GPU the one with the newest CUDA that can be built and runs, else one without.

    A machine with a GPU never gets a target without CUDA: that would be found out after hours.

    Args:
        context: Where targets are found.
        around: The machine and the PyTorch.
        say: Hears of each target that can't be read.

    Raises:
        NoTargetError: None suits.
        UsageError: CONDA_OVERRIDE_CUDA should stand for the driver, and is of no use.
        ManifestError: A target is called `auto`.
    """
    driver, useless = driver_of(around.host, around.facts), useless_override(around.host, around.facts)
    if useless and isinstance(driver, Missing):  # a target without CUDA is not what the variable meant
        raise UsageError(f"{useless.subject} {useless.message} ({useless.evidence})", hint=useless.fix)
    around = replace(around, host=replace(around.host, driver=driver))
    gpu, seen = _gpu(around.host)
    targets = sorted(_targets(context, around.host, say), key=rank, reverse=True)
    candidates = [_look(target, manifest, around, gpu=gpu, seen=seen) for target, manifest in targets]
    wanted = [candidate for candidate in candidates if candidate.gpu is gpu]
    others = [candidate for candidate in candidates if candidate.gpu is not gpu]
    ranking = (*wanted, *others) if gpu else (*others, *wanted)
    best = next((index for index, candidate in enumerate(wanted) if candidate.suits), None)
    if best is None:
        here = {target.name for target, _ in targets if _platform(around.host) in target.manifest.platforms}
        others = [candidate for candidate in others if candidate.target in here]
        raise _none(wanted, others, ranking, gpu=gpu, seen=seen)
    taken = wanted[best]
    revision = f", for PyTorch {around.source.version.value}" if around.source else ""
    return TargetChoice(taken.target, f"{taken.reason}{revision}", ranking, tuple(wanted[:best]))


def rank(found: tuple[Target, Manifest]) -> tuple[bool, Version, bool, bool, Version]:
    """Return what makes a target better than another, where both suit.

    The newest CUDA comes first, and those last that take whatever release the machine has; of one release it is the
    target that brings the toolkit, of those one without conda, and else the one that is for newer revisions.
    """
    manifest = found[1]
    numbers = [number for number in map(Version.find, str(manifest.pytorch or "").split(",")) if number]
    newest = max(numbers, default=_ANY_REVISION)
    return (
        not takes_toolkit(manifest),
        manifest.requirements.cuda or _NO_CUDA,
        toolkit_kind(manifest) is not ToolkitKind.SYSTEM,
        not manifest.dependencies,
        newest,
    )


def _targets(context: Context, host: HostReport, say: Callable[[str], None]) -> Iterator[tuple[Target, Manifest]]:
    """Yield every target that can be read, with what it asks for on the machine's platform."""
    for name in context.places.names():
        try:
            target = context.places.find(name)
        except ManifestError as error:
            if name == AUTO:
                raise
            say(f"auto: not {name}, since its manifest can't be read: {error.message}")
            continue
        yield target, target.manifest.on(_platform(host))


def _platform(host: HostReport) -> str:
    return host.platform.value if isinstance(host.platform, Fact) else current_platform()


def _gpu(host: HostReport) -> tuple[bool, str]:
    """Tell whether targets with CUDA are meant, and by what: a GPU, or at least a driver."""
    if isinstance(host.cuda, Missing) and host.cuda.kind is ReasonKind.NO_CUDA:
        return False, host.cuda.reason
    if isinstance(host.gpus, Fact) and host.gpus.value:
        names = dict.fromkeys(gpu.name or gpu.pci_id or "a GPU without a name" for gpu in host.gpus.value)
        return True, ", ".join(names)
    if isinstance(host.driver, Fact):
        return True, f"driver {host.driver.value} ({host.driver.origin})"
    if isinstance(host.gpus, Missing):
        return False, f"no NVIDIA GPU could be found ({host.gpus.reason})"
    return False, f"there is no NVIDIA GPU ({host.gpus.origin})"


def _look(target: Target, manifest: Manifest, around: Surroundings, *, gpu: bool, seen: str) -> Candidate:
    """Judge one target."""
    cuda, driver = cuda_on(manifest, around.host), judge_target(manifest, around.host, around.facts)
    taken = takes_toolkit(manifest)
    candidate = partial(Candidate, target.name, cuda, cuda is not None or taken, driver.verdict)
    words = f"CUDA {cuda}{' of this machine' if taken else ''}" if cuda else "the CUDA of this machine"
    if candidate(False, "").gpu and not gpu:
        return candidate(False, f"it has {words}, and {seen}")
    verdicts = _against(target, around)
    if not isinstance(verdicts, Verdicts):
        return candidate(False, *verdicts)
    if cuda is None:
        return candidate(
            True, f"{seen}, and it needs none" if not gpu else f"it has no CUDA and would leave {seen} unused"
        )
    how = f"{words} runs {_HOW.get(driver.verdict, driver.verdict.value)} on driver {_driver(around.host)}"
    if driver.verdict is Verdict.FORWARD and driver.finding and not verdicts.run:
        words = f"{words} runs by forward compatibility alone on driver {_driver(around.host)}"
        return candidate(False, words, driver.finding.fix)
    return candidate(True, f"{how}{_unserved(verdicts)}")


def _unserved(verdicts: Verdicts) -> str:
    """Return which GPUs a target that suits has no code for."""
    unused = [found for found in verdicts.findings if found.code in (TOO_OLD, TOO_NEW)]
    names = ", ".join(dict.fromkeys(found.subject for found in unused))
    codes = ", ".join(dict.fromkeys(found.code for found in unused))
    return f", and leaves {names} unused, for which it has no code ({codes})" if unused else ""


def _driver(host: HostReport) -> str:
    return str(host.driver.value) if isinstance(host.driver, Fact) else "(unknown)"


def _against(target: Target, around: Surroundings) -> Verdicts | tuple[str, str]:
    """Return what is against a target and what to do about it; the verdicts where nothing is."""
    platform, source, wanted = _platform(around.host), around.source, target.manifest.pytorch
    if platform not in target.manifest.platforms:
        return f"it is for {', '.join(target.manifest.platforms)}, and this is {platform}", ""
    if source and wanted and str(source.release) not in wanted:
        return f"it is for PyTorch {wanted}, and this is {source.version.value}", ""
    judge = Judge(target, source, around.facts, arch_list=around.arch_list)
    if judge.lock is None or platform not in judge.lock.platforms:
        problem = judge.lock_problem or f"its lock is not for {platform}"
        return problem, f"`tenv lock {target.name}` makes a lock"
    verdicts = judge(around.host)
    if not verdicts.build:
        return _worst(verdicts.against(Scope.BUILD, Scope.BOTH))
    against = [found for found in verdicts.against(Scope.RUN, Scope.BOTH) if found.code != FORWARD]
    return verdicts if verdicts.run or not against else _worst(tuple(against))


def _worst(findings: tuple[Finding, ...]) -> tuple[str, str]:
    """Return what the gravest finding says and how to put it right."""
    order = list(Severity)
    found = min(findings, key=lambda finding: order.index(finding.severity))
    return f"{found.subject}: {found.message} ({found.code})", found.fix


def _none(
    wanted: list[Candidate], others: list[Candidate], ranking: tuple[Candidate, ...], *, gpu: bool, seen: str
) -> NoTargetError:
    """Return the error for a machine that no target suits, with the way out and the second best by name."""
    listed = "".join(f"\n  {candidate.target}: {candidate.reason}" for candidate in wanted)
    kind = "with" if gpu else "without"
    fixes = [f"for `{candidate.target}`: {candidate.fix}" for candidate in wanted if candidate.fix][:1]
    second = [candidate.target for candidate in others if candidate.suits][:1] if gpu else []
    ways = [*fixes, *(f"`tenv create {name}` makes one without CUDA, which leaves the GPU unused" for name in second)]
    if not gpu and others:
        ways.append("`--assume-driver VERSION` or `--host-report FILE` chooses for a machine with a GPU, built here")
    return NoTargetError(
        f"no target {kind} CUDA suits this machine ({seen}){':' if listed else ''}{listed}",
        {AUTO: {"target": None, "reason": "", "ranking": [candidate.to_json() for candidate in ranking]}},
        hint="; or ".join(ways) or "`tenv targets` lists the targets, `tenv check TARGET` judges one",
    )
