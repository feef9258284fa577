"""How long the rest of a build takes: processor time by kind of source, the jobs, and what the canary showed."""

from collections.abc import Iterator, Mapping, Sequence

from tenv.builds.task_costs import Task, TaskKind, total_seconds
from tenv.core.dataclass import dataclass

__all__ = ["Forecast", "Tried", "duration", "forecast"]

_COUNTED = 20
"""How many compilations the cache must have answered before its rate says something of hundreds more."""
_BUSY = 1.3
"""How many times longer than on a quiet machine a build takes on one that is called busy."""
_HIT = 0.1
"""Seconds of a core that a hit takes where the canary does not tell: 267 hits took 13 s on 2 cores, with the links."""
_COMPILES = (TaskKind.C, TaskKind.CXX, TaskKind.CUDA)


@dataclass(frozen=True, slots=True)
class Tried:
    """What the canary showed of the machine and of its compile cache.

    Attributes:
        slowdown: How many times its processor time a task of it took; 0 where that is not known.
        hits: How many of its compilations came out of the cache.
        misses: How many did not.
        kinds: What kinds of sources were compiled.
        missed: The heavy sources of it that did not come out of the cache.
        hit_seconds: The processor time of a hit; 0 where that is not known.
    """

    slowdown: float = 0.0
    hits: int = 0
    misses: int = 0
    kinds: frozenset[TaskKind] = frozenset()
    missed: tuple[str, ...] = ()
    hit_seconds: float = 0.0

    def serves(self, kind: TaskKind) -> bool:
        """Tell whether the rate is one of this kind; C goes the way of C++, which is compiled by the same program."""
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
    """What a build is expected to take.

    Attributes:
        seconds: How long, on a machine that has nothing else to do.
        uncached: How long if nothing came out of the compile cache.
        busy: How long if other programs go on as they did in the canary; None where none of them was noticed.
        tried: What the canary showed; None before it.
    """

    seconds: float
    uncached: float
    busy: float | None
    tried: Tried | None

    @property
    def cache_words(self) -> str:
        """What is to be said of the compile cache; empty where it was not asked."""
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
        """What is to be said of a machine that has other things to do."""
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
    """Return what the tasks of a build are expected to take.

    Args:
        tasks: What is to be done.
        architectures: For how many GPU architectures a CUDA file is compiled.
        factor: How much longer this machine takes than the one of the table, by kind.
        jobs: How many tasks run at a time.
        cores: The processors.
        tried: What the canary showed; None before it.
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
