"""Check whether a PyTorch revision is known to fail with a target's CUDA or this driver, or was never built with it.

The rows are in ``tenv/facts/data/pytorch_tried.toml``. While the trunk has the number of the first working release,
the day of the commit decides, then the versions in its CI (`tenv.checks.pytorch_ci`).
"""

from collections.abc import Iterator

from tenv.checks.pytorch_source import SourceTree
from tenv.checks.rules.common import cuda_of, doubt
from tenv.checks.rules.interface import Case, Finding, Scope, Severity, Unknown
from tenv.core.versions import Version
from tenv.facts.pytorch_tried import KnownFailure, Part
from tenv.host.interface import Missing

__all__ = ["DRIVER", "TRIED", "cuda_tried", "driver_tried", "known_failure"]

TRIED = "TE610"
DRIVER = "TE614"


def known_failure(case: Case, part: Part, version: Version) -> tuple[KnownFailure, bool] | None:
    """Return why a part fails with the revision, and whether it is certain; None if no failure is known.

    Args:
        case: The case.
        part: CUDA, GCC, Python, CMake or the driver.
        version: The version of the part.
    """
    source = case.source
    if source is None:
        return None
    found = case.facts.pytorch_tried.find(part, version, source.version.value, case.platform, source.day)
    cuda = cuda_of(case)
    if found is None or (found[0].with_cuda and cuda is None):
        return None
    row, sure = found
    if row.cuda_from is not None and (cuda is None or cuda < row.cuda_from):
        return None
    if sure or source.tested is None or part in (Part.GCC, Part.CMAKE, Part.DRIVER):
        return found
    listed = source.tested.cudas if part is Part.CUDA else source.tested.pythons
    if not listed:
        return found
    # A list that ends before what fails is of a day before it worked; a new CUDA comes with all minors of its major.
    return (row, True) if row.first is not None and listed[-1] < row.first else None


def cuda_tried(case: Case) -> Iterator[Finding]:
    """Yield an error if the revision is known to fail with the CUDA, a note if no build of both is known."""
    cuda, source = cuda_of(case), case.source
    if cuda is None or source is None:
        return
    if found := known_failure(case, Part.CUDA, cuda):
        yield _failure(case, source, cuda, *found)
    elif untried := _untried(case, source, cuda):
        builds, origin = untried
        yield Finding(
            code=TRIED,
            severity=Severity.NOTE,
            subject=f"CUDA {cuda}",
            message=f"no build of PyTorch {source.version.value} with it is known: {builds}",
            evidence=f"{source.version.value} ({source.version.origin})",
            source=origin,
            fix="try it, or choose a target with one of these",
        )


def driver_tried(case: Case) -> Iterator[Finding]:
    """Yield an error if what the revision builds is known to fail on the driver, a warning if its day decides."""
    driver, source = case.host.driver, case.source
    if source is None or isinstance(driver, Missing) or not (found := known_failure(case, Part.DRIVER, driver.value)):
        return
    row, sure = found
    yield Finding(
        code=DRIVER,
        severity=Severity.ERROR if sure else Severity.WARNING,
        subject=f"driver {driver.value}",
        message=f"{'fails' if sure else 'failed on some days'} with PyTorch {source.version.value}: "
        f"{row.what}{doubt(row.basis)}",
        evidence=f"{source.version.value} ({source.version.origin}); driver {driver.value} ({driver.origin})",
        source=row.basis.source,
        fix=f"install NVIDIA driver {row.below} or newer, or choose a release of PyTorch",
        unknown=None if sure else Unknown(Scope.RUN, "pytorch_tried"),
    )


def _failure(case: Case, source: SourceTree, cuda: Version, row: KnownFailure, sure: bool) -> Finding:
    torch = source.version.value
    message = f"fails with PyTorch {torch}: {row.what}"
    if not sure:
        message = f"failed with the trunk before {row.torch_below}, and {torch} is of these days: {row.what}"
    old = row.below is not None and row.first is None
    other = f"CUDA {row.below} or newer" if old else f"a CUDA before {row.first}"
    revision = f"PyTorch {row.torch_below} or newer" if not old else "an older revision"
    return Finding(
        code=TRIED,
        severity=Severity.ERROR if sure else Severity.WARNING,
        subject=f"CUDA {cuda}",
        message=f"{message}{doubt(row.basis)}",
        evidence=f"{torch} ({source.version.origin}); requirements.cuda of {case.manifest.file}",
        source=row.basis.source,
        fix=f"choose a target with {other}, or {revision}",
        unknown=None if sure else Unknown(Scope.BUILD, "pytorch_tried"),
    )


def _untried(case: Case, source: SourceTree, cuda: Version) -> tuple[str, str] | None:
    """Return what the revision was built with, and who says so, where that leaves a CUDA outside; None else."""
    row = case.facts.pytorch_build.release(source.version.value)
    origin = ""
    known: set[Version] = set()
    if source.tested is not None:
        known, origin = set(source.tested.cudas), source.tested.file
    if row is not None and row.version.major_minor == source.release.major_minor:
        known |= {*row.cuda_stable, *row.cuda_experimental}
        origin = "; ".join(filter(None, (origin, row.basis.source)))
    minors = sorted({Version(one.major_minor) for one in known})
    if not minors or minors[0] <= Version(cuda.major_minor) <= minors[-1]:
        return None
    return f"its own were made with CUDA {', '.join(map(str, minors))}", origin
