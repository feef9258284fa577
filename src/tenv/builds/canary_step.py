"""Step `canary`: the first libraries and one heavy CUDA file are built before the hours begin."""

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from tenv.builds.build_job import BuildJob, Done
from tenv.builds.compile_cache import CacheUse
from tenv.builds.estimate_step import Tried, check_estimate
from tenv.builds.logged_run import look_up, run_logged
from tenv.builds.ninja_plan import CompileWatch, NinjaRun, kind_of_object, remaining, served, targets
from tenv.builds.task_costs import TaskKind
from tenv.core.dataclass import dataclass

__all__ = ["run_canary"]

_FIRST = ("c10", "c10_cuda")
_HEAVY = ("FillKernel.cu", "ActivationGeluKernel.cu", "Sort.cu", "Blas.cpp", "SpectralOps.cpp", "BinaryOps.cpp")

_MOST_BEFORE = 60
"""Tasks that a heavy object may wait for: with protobuf to be built first, it would be no early sign of anything."""

_NOTICED = 1.0
"""Seconds of processors below which a canary does not show how busy the machine is."""


@dataclass(frozen=True, slots=True)
class _Heavy:
    """A heavy object that is still to be compiled.

    Attributes:
        output: The object, as Ninja names it.
        before: How many tasks come before it.
    """

    output: str
    before: int

    @property
    def waits(self) -> bool:
        """Whether it waits for too much to be tried first."""
        return self.before >= _MOST_BEFORE

    @property
    def words(self) -> str:
        """Why it is not tried."""
        return f"not tried: {self.output}, which waits for {self.before} other tasks"


def _first(job: BuildJob) -> list[str]:
    """Return the libraries that are built first; none where one target alone is asked for."""
    known = frozenset[str]() if job.request.only else targets(job.folder, job.environ)
    return [name for name in _FIRST if name in known]


def _heavy(job: BuildJob) -> Iterator[_Heavy]:
    """Yield one heavy object of each language that is still to be compiled; none where one target is asked for."""
    if job.request.only:
        return
    tasks = remaining(job.folder, ("all",), job.environ) or ()
    for kind in (TaskKind.CUDA, TaskKind.CXX):
        outputs = [task.output for task in tasks if task.kind is kind]
        named = (output for name in _HEAVY for output in outputs if output.endswith((f"/{name}.o", f"_{name}.o")))
        found = next(named, None)
        if found:
            yield _Heavy(found, len(remaining(job.folder, (found,), job.environ) or ()) - 1)


def run_canary(job: BuildJob) -> Done:
    """Build the canary, and correct the estimate by its time."""
    heavy = list(_heavy(job))
    names = [*_first(job), *(one.output for one in heavy if not one.waits)]
    untried = [one for one in heavy if one.waits]
    missed = [one.words for one in untried]
    facts: dict[str, Any] = {"targets": names, "untried": [one.output for one in untried]}
    if not names:
        return Done((), facts, lines=("nothing to try first", *missed))
    log, watch = job.log("canary"), CompileWatch(job)
    command = ["cmake", "--build", str(job.folder), "--target", *names]
    ran = run_logged(
        command,
        log,
        environ=job.environ,
        folder=job.checkout,
        progress=job.context.progress,
        title="canary",
    )
    facts |= {"seconds": round(ran.seconds, 1), "processor": round(ran.processor, 1)}
    if ran.status:
        table = job.context.facts().build_failures
        return Done([look_up(ran, "TE961", f"the canary ({', '.join(names)})", log, table)], facts, log)
    used = watch.used()
    job.tried = _tried(watch.keep(ran.processor, used), used, names)
    after = check_estimate(job)
    facts |= {"estimate": (after.facts or {}).get("seconds"), "cache": {"hits": used.hits, "misses": used.misses}}
    return Done((), facts, log, (f"built {', '.join(names)}", *missed, *after.lines))


def _tried(run: NinjaRun, used: CacheUse, names: Sequence[str]) -> Tried:
    """Return the results of the canary."""
    came = served(run, used)
    heavy = [name for name in names if name in run.rows]
    compiled = run.processor >= _NOTICED and used.hits <= used.misses  # hits wait for the disk, and for no processor
    return Tried(
        slowdown=run.elapsed / run.processor if compiled else 0.0,
        hits=used.hits,
        misses=used.misses,
        kinds=frozenset(map(kind_of_object, run.objects)),
        missed=tuple(PurePath(name).stem for name in heavy if name not in came and PurePath(name).stem in used.missed),
        hit_seconds=run.seconds_of(came) / len(came) if came else 0.0,
    )
