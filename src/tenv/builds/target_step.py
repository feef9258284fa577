"""Step `target`: the one that is named, that of ``tenv.toml``, else the best one; judged by the build verdict alone."""

from pathlib import Path

from tenv.builds.build_job import BuildJob
from tenv.builds.checkout_step import check_folder, settle_target
from tenv.builds.step_report import Done, build_finding
from tenv.checks.before_create import look_around, require_build
from tenv.checks.choose_target import choose
from tenv.checks.rules.checkout import STALE
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.errors import TenvError, UnfitHostError
from tenv.environment.state import digests_of
from tenv.locks.lock import Lock
from tenv.locks.lock_file import read_lock
from tenv.targets.config import PROJECT_FILE, read_project_settings
from tenv.targets.search import AUTO

__all__ = ["check_target", "named_target"]


def named_target(start: Path) -> str | None:
    """Return the default target of the nearest ``tenv.toml`` upwards; None where there is none, or it names none.

    Raises:
        UsageError: The file can't be read.
    """
    file = next((found for folder in (start, *start.parents) if (found := folder / PROJECT_FILE).is_file()), None)
    return (read_project_settings(file.parent).default or None) if file else None


def check_target(job: BuildJob) -> Done:
    """Choose the target, and judge it on this machine and for this checkout.

    Raises:
        TenvError: There is no such target, or none suits.
    """
    job.around = look_around(job.context, str(job.checkout))
    lines: list[str] = []
    findings: list[Finding] = []
    if job.request.target in (None, AUTO):
        choice = choose(job.context, job.around, job.context.progress.say)
        lines += choice.lines()
        settle_target(job, choice.target)
        findings += _without_gpu(job)
        findings += check_folder(job)
    else:
        settle_target(job, str(job.request.target))
    try:
        findings += require_build(job.target, job.around, _lock(job), digests_of(job.environment.state()))
    except UnfitHostError as error:
        findings += [_as_finding(row) for row in error.findings]
    if job.request.fresh or job.request.clean:  # which is what mends it
        findings = [found for found in findings if found.code != STALE]
    facts = {"target": job.target.name, "prefix": str(job.environment.prefix)}
    return Done(findings, facts, lines=(*lines, f"{job.target.name}: {job.target.manifest.description}"))


def _lock(job: BuildJob) -> Lock | None:
    try:
        return read_lock(job.target.lock_file, job.target.name)
    except TenvError:
        return None


def _as_finding(row: dict[str, str]) -> Finding:
    return Finding(**{**row, "severity": Severity(row["severity"])})  # type: ignore[arg-type]


def _without_gpu(job: BuildJob) -> list[Finding]:
    """Return how a build server asks for CUDA, where the machine has led to a target without."""
    manifest = job.target.manifest
    if manifest.requirements.cuda or "cuda-toolkit" in manifest.system:
        return []
    with_cuda = [name for name in job.context.places.names() if name.startswith("cuda")]
    example = max(with_cuda, default="cuda130")
    return [
        build_finding(
            "TE911",
            job.target.name,
            "has no CUDA: this machine has no GPU, and a build without one is what `auto` takes",
            "no target is named",
            "docs/build.md",
            f"`tenv build {example} --pytorch {job.checkout}` builds with CUDA; compiling needs neither GPU nor driver",
            Severity.NOTE,
        )
    ]
