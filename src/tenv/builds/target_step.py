"""Step `target`: the one that is named, that of ``tenv.toml``, else the best one; judged by the build verdict alone."""

from pathlib import Path

import tomli

from tenv.builds.build_job import BuildJob
from tenv.builds.checkout_step import check_folder, settle_target
from tenv.builds.step_report import Done, build_finding
from tenv.checks.before_create import look_around, require_build
from tenv.checks.choose_target import choose
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.errors import ManifestError, TenvError, UnfitHostError
from tenv.locks.lock import Lock
from tenv.locks.lock_file import read_lock
from tenv.targets.search import AUTO

__all__ = ["check_target", "named_target"]


def named_target(start: Path) -> str | None:
    """Return the target that the nearest ``tenv.toml`` upwards names as ``default``; None where none does.

    Raises:
        ManifestError: The file can't be read.
    """
    for folder in (start, *start.parents):
        file = folder / "tenv.toml"
        if not file.is_file():
            continue
        try:
            name = tomli.loads(file.read_text(encoding="utf-8")).get("default")
        except (OSError, ValueError, RecursionError) as error:
            raise ManifestError(f"{file}: can't be read: {error}", hint="mend the file") from error
        return name if isinstance(name, str) else None
    return None


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
        findings += require_build(job.target, job.around, _lock(job))
    except UnfitHostError as error:
        findings += [_as_finding(row) for row in error.findings]
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
