"""Select the best target for a host and a PyTorch revision, and report why others were rejected."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

from tenv.checks.before_create import Surroundings
from tenv.checks.judge import Judge, Verdicts, platform_of
from tenv.checks.rules.driver import Verdict
from tenv.checks.rules.driver_findings import FORWARD
from tenv.checks.rules.from_machine import LACKING
from tenv.checks.rules.gpu import TOO_NEW, TOO_OLD
from tenv.checks.rules.interface import Finding, Scope, Severity
from tenv.checks.rules.judged_driver import driver_of, useless_override
from tenv.core.dataclass import dataclass
from tenv.core.errors import ManifestError, NoTargetError, UsageError
from tenv.core.versions import Version
from tenv.facts.pytorch_build import Release
from tenv.host.interface import Fact, Missing, ReasonKind
from tenv.host.report import HostReport
from tenv.locks.lock import Lock
from tenv.project.context import Context
from tenv.targets.manifest import Manifest
from tenv.targets.order import NO_CUDA, newest_pytorch, takes_toolkit
from tenv.targets.search import AUTO, Target
from tenv.targets.toolkit_kind import ToolkitKind, toolkit_kind

_HOW = {
    Verdict.NATIVE: "natively",
    Verdict.MINOR_VERSION: "by minor-version compatibility",
    Verdict.FORWARD: "by forward compatibility",
}
_NUMBERS = re.compile(r"(?<![\w.-])\d[\d.]*")
"""The numbers by which the reasons against several targets differ: the CUDA of each, and what it supports."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A target that was considered."""

    target: str
    """Its name."""
    cuda: Version | None
    """Its CUDA release; None without CUDA, or if it uses the host's toolkit and the host has none."""
    gpu: bool
    """Whether it has CUDA."""
    verdict: Verdict
    """How the driver supports it."""
    suits: bool
    """Whether it can be built and run here."""
    reason: str
    """Why it suits, or why it does not."""
    fix: str = ""
    """The fix of the reason against it, or an empty string."""
    system: bool = False
    """Whether the toolkit is the host's."""
    conda: bool = False
    """Whether it has conda packages."""
    aside: str = ""
    """Why another target goes before it although it suits, or an empty string."""

    def to_json(self) -> dict[str, Any]:
        """Return the candidate as JSON values."""
        return {
            "target": self.target,
            "cuda": str(self.cuda or ""),
            "verdict": self.verdict.value,
            "suits": self.suits,
            "reason": self.aside or self.reason,
        }


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """The selected target."""

    target: str
    """Its name."""
    reason: str
    """Why it was selected."""
    ranking: tuple[Candidate, ...]
    """Every considered target, best first."""
    better: tuple[Candidate, ...]
    """Targets that rank higher, but do not suit or are left aside."""

    def to_json(self) -> dict[str, Any]:
        """Return the choice as JSON values."""
        return {
            "target": self.target,
            "reason": self.reason,
            "ranking": [candidate.to_json() for candidate in self.ranking],
        }

    def without(self, reason: str) -> "TargetChoice | None":
        """Return the choice if the selected target falls out; None if no other one suits.

        Args:
            reason: Why it falls out.
        """
        at = next(index for index, candidate in enumerate(self.ranking) if candidate.target == self.target)
        out = replace(self.ranking[at], suits=False, reason=reason)
        ranking = (*self.ranking[:at], out, *self.ranking[at + 1 :])
        others = (*ranking[at + 1 :], *(replace(candidate, aside="") for candidate in ranking[:at] if candidate.suits))
        rest = [candidate for candidate in others if candidate.gpu is out.gpu]
        place = next((place for place, candidate in enumerate(rest) if candidate.suits), None)
        if place is None:
            return None
        taken = rest[place]
        revision = self.reason.removeprefix(self.ranking[at].reason)
        better = [candidate for candidate in (*self.better, out, *rest[:place]) if candidate.target != taken.target]
        return TargetChoice(taken.target, f"{taken.reason}{revision}", ranking, tuple(better))

    def lines(self) -> Iterator[str]:
        """Yield the choice as text: why the target was selected, and why better ones and its sisters were not."""
        yield f"{AUTO}: {self.target}, since {self.reason}"
        for _, rows in groupby(self.better, key=lambda row: _NUMBERS.sub("", row.aside or row.reason)):
            first, *like = rows
            yield f"{AUTO}: not {first.target}, since {first.aside or first.reason}"
            if like:
                yield f"{AUTO}: nor {', '.join(row.target for row in like)}, for the same reason"
        for candidate, reason in self._sisters():
            yield f"{AUTO}: not {candidate.target}, since {reason}"

    def _sisters(self) -> Iterator[tuple[Candidate, str]]:
        """Yield the targets with the same CUDA release that rank lower, each with the reason."""
        at = next(index for index, candidate in enumerate(self.ranking) if candidate.target == self.target)
        taken = self.ranking[at]
        for candidate in self.ranking[at + 1 :]:
            if taken.cuda is None or candidate.cuda is None or candidate.cuda.major_minor != taken.cuda.major_minor:
                continue
            if not candidate.suits:
                yield candidate, candidate.reason
            elif candidate.system and not taken.system:
                yield candidate, f"`{taken.target}` brings the same CUDA, and it uses the host's"
            elif candidate.conda and not taken.conda:
                yield candidate, f"`{taken.target}` has the same CUDA without conda, and suits this host"
            else:
                yield candidate, f"`{taken.target}` has the same CUDA for newer PyTorch revisions"


def choose(
    context: Context, around: Surroundings, say: Callable[[str], None], locks: Mapping[str, Lock] | None = None
) -> TargetChoice:
    """Return the best target: with a GPU, the newest CUDA that can be built and run; otherwise a target without CUDA.

    A host with a GPU never gets a target without CUDA: the user would notice only after hours of compiling.

    Args:
        context: Where targets are found.
        around: The host and the PyTorch revision.
        say: Called with a message for each target that can't be read.
        locks: The locks that the caller has read, by target.

    Raises:
        NoTargetError: No target suits.
        UsageError: `CONDA_OVERRIDE_CUDA` replaces the driver, and its value is unusable.
        ManifestError: A target is called `auto`.
    """
    driver, useless = driver_of(around.host, around.facts), useless_override(around.host, around.facts)
    if useless and isinstance(driver, Missing):  # the variable asks for CUDA, so a target without CUDA is wrong
        raise UsageError(f"{useless.subject} {useless.message} ({useless.evidence})", hint=useless.fix)
    around = replace(around, host=replace(around.host, driver=driver))
    gpu, seen = _gpu(around.host)
    targets = sorted(_targets(context, around.host, say), key=rank, reverse=True)
    known = locks or {}
    candidates = [
        _look(target, manifest, around, known.get(target.name), gpu=gpu, seen=seen) for target, manifest in targets
    ]
    wanted = [candidate for candidate in candidates if candidate.gpu is gpu]
    others = [candidate for candidate in candidates if candidate.gpu is not gpu]
    ranking = (*wanted, *others) if gpu else (*others, *wanted)
    best = next((index for index, candidate in enumerate(wanted) if candidate.suits), None)
    if best is None:
        here = {target.name for target, _ in targets if platform_of(around.host) in target.manifest.platforms}
        others = [candidate for candidate in others if candidate.target in here]
        raise _none(wanted, others, ranking, gpu=gpu, seen=seen)
    best, wanted = _before(wanted, best, around)
    ranking = (*wanted, *others) if gpu else ranking
    taken = wanted[best]
    revision = f", for PyTorch {around.source.version.value}" if around.source else ""
    return TargetChoice(taken.target, f"{taken.reason}{revision}", ranking, tuple(wanted[:best]))


def _before(wanted: list[Candidate], best: int, around: Surroundings) -> tuple[int, list[Candidate]]:
    """Return the place of the candidate to take, and all candidates with why those before it are left aside.

    Only a CUDA that the revision calls stable goes before the best one, and only where that is left aside.
    """
    cuda = wanted[best].cuda
    if cuda is None or not (aside := why_aside(cuda, around)):
        return best, wanted
    unpublished = _unpublished(cuda, around)
    for place, candidate in enumerate(wanted):
        if not candidate.suits or candidate.cuda is None or why_aside(candidate.cuda, around):
            continue
        passed = [replace(one, aside=aside) if one.suits else one for one in wanted[:place]]
        before = unpublished or is_stable(candidate.cuda, around)
        return (place, [*passed, *wanted[place:]]) if before else (best, wanted)
    return best, wanted


def why_aside(cuda: Version, around: Surroundings) -> str:
    """Return why a CUDA that builds and runs goes after an older one; an empty string for one that does not.

    Either no release of PyTorch was published for the CUDA, or both: the revision's release calls the CUDA
    experimental, and has no wheels with it on the index, and NVIDIA packages that CUDA for no system with the host's
    glibc. One of these two alone is no reason to use an older one.

    Args:
        cuda: The release of the toolkit.
        around: The host and the PyTorch revision.
    """
    if reason := _unpublished(cuda, around):
        return reason
    row, libc = _release(around), around.host.libc
    if row is None or not isinstance(libc, Fact) or not _among(cuda, row.cuda_experimental):
        return ""
    ended = around.facts.cuda_host_compiler.ended(cuda, libc.value)
    if ended is None or is_stable(cuda, around):
        return ""
    return (
        f"PyTorch {row.version.major_minor} calls CUDA {cuda.major_minor} experimental, and NVIDIA packages none after "
        f"{ended.last} for {ended.system} (glibc {ended.glibc})"
    )


def _unpublished(cuda: Version, around: Surroundings) -> str:
    """Return that the revision's release, or the newest one, has no build for a CUDA that new; else an empty string."""
    row = _release(around) or (None if around.source else around.facts.pytorch_build.releases[-1])
    own = (*row.cuda_stable, *row.cuda_experimental, *([row.wheel_cuda] if row.wheel_cuda else [])) if row else ()
    newest = max(own, default=None)
    if row is None or newest is None or Version(cuda.major_minor) <= Version(newest.major_minor):
        return ""
    return f"PyTorch {row.version.major_minor} was published for CUDA {newest.major_minor} at most"


def is_stable(cuda: Version, around: Surroundings) -> bool:
    """Return whether the revision's release calls a CUDA stable, or has wheels with it on the index."""
    row = _release(around)
    return row is not None and _among(cuda, (*row.cuda_stable, *([row.wheel_cuda] if row.wheel_cuda else [])))


def _release(around: Surroundings) -> Release | None:
    """Return the row of the revision's minor release; None without a revision, or if the table has no such release."""
    row = around.facts.pytorch_build.release(around.source.version.value) if around.source else None
    same = row and around.source and row.version.major_minor == around.source.release.major_minor
    return row if same else None


def _among(cuda: Version, others: tuple[Version, ...]) -> bool:
    return any(other.major_minor == cuda.major_minor for other in others)


def rank(found: tuple[Target, Manifest]) -> tuple[bool, Version, bool, bool, Version]:
    """Return the sort key of a target that suits.

    The newest CUDA comes first. Targets that use the host's toolkit come last. Within a release, targets that bring
    the toolkit come first, then those without conda, then those for newer PyTorch revisions.
    """
    manifest = found[1]
    return (
        not takes_toolkit(manifest),
        manifest.requirements.cuda or NO_CUDA,
        toolkit_kind(manifest) is not ToolkitKind.SYSTEM,
        not manifest.dependencies,
        newest_pytorch(manifest),
    )


def _targets(context: Context, host: HostReport, say: Callable[[str], None]) -> Iterator[tuple[Target, Manifest]]:
    """Yield every readable target with its manifest for the host's platform."""
    for name in context.places.names():
        try:
            target = context.places.find(name)
        except ManifestError as error:
            if name == AUTO:
                raise
            say(f"auto: not {name}, since its manifest can't be read: {error.message}")
            continue
        if not target.manifest.beside:  # a toolkit of another environment is for its torch alone
            yield target, target.manifest.on(platform_of(host))


def _gpu(host: HostReport) -> tuple[bool, str]:
    """Return whether to select among targets with CUDA, and the evidence: a GPU or a driver."""
    if isinstance(host.cuda, Missing) and host.cuda.kind is ReasonKind.NO_CUDA:
        return False, host.cuda.reason
    if isinstance(host.gpus, Fact) and host.gpus.value:
        names = dict.fromkeys(gpu.name or gpu.pci_id or "a GPU without a name" for gpu in host.gpus.value)
        return True, ", ".join(names)
    if isinstance(host.driver, Fact):
        return True, f"driver {host.driver.value} ({host.driver.origin})"
    if isinstance(host.gpus, Missing):
        return False, f"no NVIDIA GPU was detected ({host.gpus.reason})"
    return False, f"the host has no NVIDIA GPU ({host.gpus.origin})"


def _look(
    target: Target, manifest: Manifest, around: Surroundings, lock: Lock | None, *, gpu: bool, seen: str
) -> Candidate:
    """Judge one target."""
    judge = Judge(target, around.source, around.facts, lock=lock, arch_list=around.arch_list, exported=around.exported)
    verdicts = judge(around.host)
    cuda, verdict, taken = verdicts.cuda, verdicts.driver.verdict, takes_toolkit(manifest)
    system, conda = toolkit_kind(manifest) is ToolkitKind.SYSTEM, bool(manifest.dependencies)
    has_cuda = cuda is not None or taken
    candidate = partial(Candidate, target.name, cuda, has_cuda, verdict, system=system, conda=conda)
    if manifest.requirements.waits:
        return candidate(False, f"its CUDA is that of torch, which is not locked: `tenv lock {target.name}`")
    words = f"CUDA {cuda}{' of the host' if taken else ''}" if cuda else "the CUDA of the host"
    if has_cuda and not gpu:
        return candidate(False, f"it has {words}, and {seen}")
    if against := _against(target, around, judge, verdicts):
        return candidate(False, *against)
    if cuda is None:
        return candidate(
            True, f"{seen}, and the target needs none" if not gpu else f"it has no CUDA, so it leaves {seen} unused"
        )
    how = f"{words} runs {_HOW.get(verdict, verdict.value)} on driver {_driver(around.host)}"
    if verdict is Verdict.FORWARD and not verdicts.run:
        words = f"{words} runs only by forward compatibility on driver {_driver(around.host)}"
        return candidate(False, words, next(found.fix for found in verdicts.findings if found.code == FORWARD))
    return candidate(True, f"{how}{_unserved(verdicts)}")


def _unserved(verdicts: Verdicts) -> str:
    """Return the GPUs that a suitable target has no code for."""
    unused = [found for found in verdicts.findings if found.code in (TOO_OLD, TOO_NEW)]
    names = ", ".join(dict.fromkeys(found.subject for found in unused))
    codes = ", ".join(dict.fromkeys(found.code for found in unused))
    return f"; it has no code for {names} ({codes})" if unused else ""


def _driver(host: HostReport) -> str:
    return str(host.driver.value) if isinstance(host.driver, Fact) else "(unknown)"


def _against(target: Target, around: Surroundings, judge: Judge, verdicts: Verdicts) -> tuple[str, str] | None:
    """Return why a target does not suit and the fix; None if it suits."""
    platform = verdicts.platform
    if platform not in target.manifest.platforms:
        return f"it is for {', '.join(target.manifest.platforms)}, and this host is {platform}", ""
    if other := of_other_revisions(target, around):
        return other, ""
    if judge.lock is None or platform not in judge.lock.platforms:
        problem = judge.lock_problem or f"its lock is not for {platform}"
        return problem, f"`tenv lock {target.name}` writes a lock"
    if not verdicts.build:
        return worst(verdicts.against(Scope.BUILD, Scope.BOTH))
    against = [found for found in verdicts.against(Scope.RUN, Scope.BOTH) if found.code != FORWARD]
    return worst(tuple(against)) if against and not verdicts.run else None


def of_other_revisions(target: Target, around: Surroundings) -> str:
    """Return why a target is not meant for the PyTorch revision; an empty string for one that is."""
    source, wanted = around.source, target.manifest.pytorch
    if source and wanted and str(source.release) not in wanted:
        return f"it is for PyTorch {wanted}, and the revision is {source.version.value}"
    return ""


def worst(findings: tuple[Finding, ...]) -> tuple[str, str]:
    """Return the message and the fix of the most severe finding."""
    order = list(Severity)
    found = min(findings, key=lambda finding: order.index(finding.severity))
    has = f": {found.evidence}" if found.code == LACKING else ""  # its message does not list the host's tools
    return f"{found.subject}: {found.message} ({found.code}){has}", found.fix


def _none(
    wanted: list[Candidate], others: list[Candidate], ranking: tuple[Candidate, ...], *, gpu: bool, seen: str
) -> NoTargetError:
    """Return the error for a host that no target suits, with the closest target and its fix."""
    listed = "".join(f"\n  {candidate.target}: {candidate.reason}" for candidate in wanted)
    kind = "with" if gpu else "without"
    fixes = [f"for `{candidate.target}`: {candidate.fix}" for candidate in wanted if candidate.fix][:1]
    second = [candidate.target for candidate in others if candidate.suits][:1] if gpu else []
    ways = [*fixes, *(f"`tenv create {name}` uses no CUDA and leaves the GPU unused" for name in second)]
    if not gpu and others:
        ways.append(
            "`--assume-driver VERSION` or `--host-report FILE` selects a target for a host with a GPU, built here"
        )
    return NoTargetError(
        f"no target {kind} CUDA suits this host ({seen}){':' if listed else ''}{listed}",
        {AUTO: {"target": None, "reason": "", "ranking": [candidate.to_json() for candidate in ranking]}},
        hint="; or ".join(ways) or "`tenv targets` lists the targets; `tenv check TARGET` checks one",
    )
