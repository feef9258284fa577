"""Step `estimate`: how long the build takes, and whether the disk and the memory suffice.

The time follows from the processor time by kind of source, the jobs, and the results of the canary.
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tenv.activation.changes import is_own
from tenv.builds.build_job import BuildJob, BuildWay, DebugKind, Done, build_finding
from tenv.builds.distribution import refuse_native_commands
from tenv.builds.extension_plan import job_limits
from tenv.builds.extension_steps import extension_tasks, refused
from tenv.builds.ninja_plan import ENOUGH, damage, kind_of_object, measured, remaining
from tenv.builds.task_costs import (
    DISK,
    MemoryPlan,
    Task,
    TaskKind,
    is_used,
    link_memory,
    memory_jobs,
    seconds_of,
    set_places,
    total_seconds,
)
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.dataclass import dataclass
from tenv.core.missing import Missing
from tenv.core.size_text import format_bytes
from tenv.core.untrusted import whole_number
from tenv.facts.torch_packages import UNIT_GIB
from tenv.host.interface import Fact
from tenv.host.machine import probe

_COUNTED = 20
"""How many compilations the cache must have answered before its rate predicts hundreds more."""
_BUSY = 1.3
"""How many times longer than on a quiet machine a build takes on one that is called busy."""
_HIT = 0.1
"""Seconds of a core that a hit takes where the canary has none: 267 hits took 13 s on 2 cores, with the links."""
_WITH_TORCH = 5.0
"""How many times longer than a file of PyTorch a C++ file takes that includes torch/extension.h."""
_COMPILES = (TaskKind.C, TaskKind.CXX, TaskKind.CUDA)


@dataclass(frozen=True, slots=True)
class Tried:
    """The results of the canary about the machine and its compile cache."""

    slowdown: float = 0.0
    """How many times its processor time a task of it took; 0 where that is not known."""
    hits: int = 0
    """How many of its compilations came out of the cache."""
    misses: int = 0
    """How many did not."""
    kinds: frozenset[TaskKind] = frozenset()
    """The kinds of sources that were compiled."""
    missed: tuple[str, ...] = ()
    """The heavy sources of it that did not come out of the cache."""
    hit_seconds: float = 0.0
    """The processor time of a hit; 0 where that is not known."""

    def serves(self, kind: TaskKind) -> bool:
        """Return whether the rate is one of this kind; C goes the way of C++, which is compiled by the same program."""
        return kind in _COMPILES and (TaskKind.CXX if kind is TaskKind.C else kind) in self.kinds

    @property
    def rate(self) -> float:
        """The share of further compilations that the cache is expected to serve; 0 where too little is known.

        c10 changes seldom, so that its sources hit where all others miss: a heavy source must have hit as well.
        """
        if self.hits + self.misses < _COUNTED or self.missed:
            return 0.0
        return self.hits / (self.hits + self.misses + 1)  # no sample makes certain


@dataclass(frozen=True, slots=True)
class Forecast:
    """The expected duration of a build."""

    seconds: float
    """How long, on a machine that has nothing else to do."""
    uncached: float
    """How long if nothing came out of the compile cache."""
    busy: float | None
    """How long if other programs go on as they did in the canary; None where none of them was noticed."""
    tried: Tried | None
    """The results of the canary; None before it."""

    @property
    def cache_words(self) -> str:
        """The words about the compile cache; empty where it was not asked."""
        tried = self.tried
        if tried is None or not tried.hits:
            return ""
        count = tried.hits + tried.misses
        answered = f"{100 * tried.hits / count:.0f} % of {count} compilation{'s' if count > 1 else ''}"
        if tried.rate:
            without = duration(self.uncached)
            return f"the compile cache counts as it answered for the canary ({answered}); without it {without}"
        why = f"{tried.missed[0]} did not come out of it" if tried.missed else "they are too few"
        return f"the compile cache does not count, though it answered for the canary ({answered}): {why}"

    @property
    def busy_words(self) -> Iterator[str]:
        """The line about other programs on the machine."""
        if self.tried is not None and self.busy is not None:
            times = f"{self.tried.slowdown:.1f} times their processor time"
            yield f"the machine is busy now: tasks took {times}; if that stays, about {duration(self.busy)}"


def forecast(
    tasks: Sequence[Task],
    architectures: int,
    factor: Mapping[TaskKind, float],
    *,
    jobs: int,
    cores: int,
    tried: Tried | None,
) -> Forecast:
    """Return the expected duration of tasks.

    Args:
        tasks: The tasks that are left.
        architectures: For how many GPU architectures a CUDA file is compiled.
        factor: How much longer this machine takes than the one of the table, by kind.
        jobs: How many tasks run at a time.
        cores: The processors.
        tried: The results of the canary; None before it.
    """
    slots = max(1, min(jobs, cores))
    uncached = total_seconds(tasks, architectures, factor)
    work = uncached
    if tried is not None and tried.rate:
        served = [task for task in tasks if tried.serves(task.kind)]
        hit = total_seconds(served, architectures, factor) * tried.rate
        work += min(0.0, len(served) * tried.rate * (tried.hit_seconds or _HIT) - hit)
    # Where there are more jobs than processors, tasks stretch each other, and that is no other program's share.
    slowdown = tried.slowdown * slots / max(1, jobs) if tried else 0.0
    busy = work / slots * slowdown if slowdown >= _BUSY else None
    return Forecast(work / slots, uncached / slots, busy, tried)


def duration(seconds: float) -> str:
    """Return a long duration for people."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{max(1, round(seconds))} s"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest:02} min" if hours else f"{minutes} min"


_LATEST = 24
"""How many compiles of a kind are asked, the latest ones: a machine may have been busier an hour ago than it is now."""
_SHORTEST = 0.3
"""Seconds; shorter compilations came out of a compile cache."""
_DOUBT = 0.3


def build_targets(job: BuildJob) -> tuple[str, ...]:
    """Return the targets that Ninja makes: the files of the package, or the target that the user names."""
    if job.request.only:
        return (job.request.only,)
    return () if job.found.way in (BuildWay.SCIKIT, BuildWay.LIBTORCH) else ("install",)


def check_estimate(job: BuildJob) -> Done:
    """Count the tasks that are left, price them, and compare the result with the disk and the memory."""
    if job.extension and (against := list(refused(job))):
        return Done(against)
    if fault := damage(job.folder, job.environ):
        return Done([_damaged(job, fault)])
    findings = list(refuse_native_commands(job))
    tasks = extension_tasks(job) if job.extension else remaining(job.folder, build_targets(job), job.environ)
    if tasks is None:
        return Done(findings, {}, lines=("not known: this revision has no plan before it compiles",))
    machine = probe()
    architectures = len(
        [one for one in job.environ.get("TORCH_CUDA_ARCH_LIST", "").replace(" ", ";").split(";") if one]
    )
    times = measured(job)
    if job.extension and not architectures and job.installed and isinstance(job.installed.gpu_code, Fact):
        architectures = len(job.installed.gpu_code.value)
    factor = _factors(times.seconds, architectures)
    memory = None if isinstance(machine.memory, Missing) else machine.memory.value
    wanted = whole_number(job.context.environ["MAX_JOBS"] if is_own(job.context.environ, "MAX_JOBS") else "")
    cores = machine.cores.value
    plan = _of_extension(job) if job.extension else memory_jobs(tasks, cores, memory, waits=is_used(job), jobs=wanted)
    plan, cores = _with_servers(job, plan, cores) if wanted is None else (plan, cores)
    job.environ |= {"MAX_JOBS": str(plan.jobs), "CMAKE_BUILD_PARALLEL_LEVEL": str(plan.jobs)}
    if plan.places:
        set_places(job, plan.places)
    by_kind = ({TaskKind.CXX: _WITH_TORCH} if job.extension else {}) | factor
    found = forecast(tasks, architectures, by_kind, jobs=plan.jobs, cores=cores, tried=job.tried)
    job.estimate = found.seconds
    need = _disk(tasks, job.request.debug.build_type)
    free = shutil.disk_usage(job.folder).free  # it may be a link, or a disk of its own
    findings += _short(job, need, free)
    if memory is not None and plan.jobs < cores and wanted is None and not _is_serial(job):
        findings.append(_limited(plan.jobs, plan.reason))
    counts = Counter(task.kind for task in tasks)
    facts = {
        "tasks": {kind.value: counts[kind] for kind in TaskKind},
        "seconds": round(found.seconds),
        "without_cache": round(found.uncached),
        "busy": None if found.busy is None else round(found.busy),
        "jobs": plan.jobs,
        "heavy_jobs": plan.places,
        "architectures": architectures,
        "disk": {"needed": need, "free": free},
        "measured": sorted(kind.value for kind in factor),
    }
    basis = "by a table" if job.tried or job.extension else "by a table; the canary corrects it"
    if factor:
        basis = f"corrected by the {'elapsed' if times.elapsed else 'processor'} time of compiles on this machine"
    lines = (*_lines(counts, found, plan, basis), *_disk_words(need, free), *_of_debug(job, counts))
    return Done(findings, facts, lines=lines)


def _with_servers(job: BuildJob, plan: MemoryPlan, cores: int) -> tuple[MemoryPlan, int]:
    """Return the jobs and the cores of the servers that compile for a build, where those are more."""
    offer = job.offer
    if offer is None or offer.cores <= plan.jobs:
        return plan, cores
    return replace(plan, jobs=offer.cores, reason=offer.reason), max(cores, offer.cores)


def _is_serial(job: BuildJob) -> bool:
    """Return whether setuptools compiles the files of an extension, one after another."""
    return job.found.way is BuildWay.EXTENSION and not job.record.get("ninja")


def _of_extension(job: BuildJob) -> MemoryPlan:
    """Return how many units of an extension are compiled at a time, by the memory that one of it is known to take."""
    assert job.extension is not None  # noqa: S101 (the caller asks for one)
    facts, machine = job.extension.facts, probe()
    if _is_serial(job):
        return MemoryPlan(1, 0, "its setup.py compiles without ninja, one file after another")
    jobs, threads = job_limits(facts, machine, job.environ, job.context.environ)
    memory = "" if isinstance(machine.memory, Missing) else f", {format_bytes(machine.memory.value)} of memory"
    reason = f"{machine.cores.value} cores{memory} at {facts.gib if facts else UNIT_GIB} GiB a unit"
    reason = "MAX_JOBS of your shell" if is_own(job.context.environ, "MAX_JOBS") else reason
    return MemoryPlan(jobs, 0, f"{reason}; {threads} threads of nvcc each" if facts and facts.threads else reason)


def _of_debug(job: BuildJob, counts: Mapping[TaskKind, int]) -> Iterator[str]:
    kind = job.request.debug.build_type
    if job.request.debug is DebugKind.NONE or not counts[TaskKind.LINK]:
        return
    fast = "-fuse-ld=" in job.environ.get("LDFLAGS", "")
    linker = "" if fast else "; GNU ld takes minutes for it, mold and lld seconds, where the target brings one"
    yield f"debug information: a link of libtorch takes about {format_bytes(link_memory(kind))} of memory{linker}"


def _lines(counts: Mapping[TaskKind, int], found: Forecast, plan: MemoryPlan, basis: str) -> Iterator[str]:
    words = ", ".join(f"{counts[kind]} {kind.value}" for kind in TaskKind if counts[kind])
    total = sum(counts.values())
    yield f"{total} task{'' if total == 1 else 's'} ({words or 'nothing to do'})"
    with_jobs = f"{plan.jobs} job{'s' if plan.jobs > 1 else ''} ({plan.reason})"
    cache = f"; {found.cache_words}" if total and found.cache_words else ""
    yield f"about {duration(found.seconds)} with {with_jobs}, {basis}{cache}"
    if total:
        yield from found.busy_words


def _disk_words(need: float, free: int) -> Iterator[str]:
    yield f"{format_bytes(need)} of disk, {format_bytes(free)} free"


def _factors(seen: Mapping[str, float], architectures: int) -> dict[TaskKind, float]:
    """Return how much longer this machine takes than the one of the table, by kind, where compiles were measured."""
    rows: dict[TaskKind, list[tuple[float, float]]] = {}
    for output, seconds in seen.items():
        task = Task(kind_of_object(output), output)
        if seconds >= _SHORTEST:
            rows.setdefault(task.kind, []).append((seconds, seconds_of(task, architectures)))
    found = {kind: _ratio(pairs[-_LATEST:]) for kind, pairs in rows.items() if len(pairs) >= ENOUGH}
    if TaskKind.CXX in found and TaskKind.CUDA not in found:
        found[TaskKind.CUDA] = found[TaskKind.CXX]
    return found


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the time of compiles over the time in the table; its rows are means, so sums are compared."""
    return sum(took for took, _ in pairs) / sum(listed for _, listed in pairs)


def _disk(tasks: Sequence[Task], build_type: str) -> int:
    table = DISK.get(build_type, DISK["Release"])
    return int(sum(table.get(task.kind, 0) for task in tasks))


def _short(job: BuildJob, need: int, free: int) -> Iterator[Finding]:
    if free >= need:
        return
    certain = free < need * (1 - _DOUBT)
    yield build_finding(
        "TE951",
        str(job.folder),
        f"has {format_bytes(free)} free, and the build takes about {format_bytes(need)}",
        f"{job.folder}: {format_bytes(need)} by the number of its objects",
        "src/tenv/builds/task_costs.py: an estimate",
        "`tenv clean` shows what the caches hold; free some, or build in a checkout on another disk",
        Severity.ERROR if certain else Severity.WARNING,
    )


def _damaged(job: BuildJob, fault: str) -> Finding:
    return build_finding(
        "TE953",
        str(job.folder / "build.ninja"),
        "can't be read by Ninja, so that nothing can be planned or built",
        fault,
        "ninja-build.org/manual.html",
        f"`tenv build {job.target.name} --fresh` configures anew",
    )


def _limited(jobs: int, reason: str) -> Finding:
    return build_finding(
        "TE952",
        "MAX_JOBS",
        f"is {jobs}, so that the memory carries the compilers",
        reason,
        "pytorch/pytorch#124018; src/tenv/builds/task_costs.py",
        "`MAX_JOBS=N tenv build` takes another number",
        Severity.NOTE,
    )
