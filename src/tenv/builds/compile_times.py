"""How long compilations took on this machine, in processor time, which other programs do not stretch.

Ninja notes when a task began and when it ended. Where other programs use the processors, that is several times what the
same task takes on a quiet machine: at a load of 6.7 on 2 cores, 3.3 times. The system counts the processor time of all
tasks of a run together, and each of them is taken to have had its share of it. What a run took is kept beside the build
folder's stamp, by output.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

from tenv.builds.build_job import BuildJob
from tenv.builds.ninja_plan import LogRow, is_object, kind_of_object, read_log
from tenv.core.dataclass import dataclass
from tenv.core.file_content import read_text
from tenv.core.files import write_atomic

__all__ = ["ENOUGH", "Measured", "NinjaRun", "compiles_elsewhere", "keep_times", "measured", "run_of"]

ENOUGH = 3
"""How many compilations of a kind must have been measured before they say how fast the machine is."""

_NAME = "processor-times.json"
_ELSEWHERE = frozenset(("sccache", "distcc", "icecc", "recc", "rewrapper"))
"""Programs whose compilations are no children of Ninja, but of a server here or on another machine."""


@dataclass(frozen=True, slots=True)
class NinjaRun:
    """What one run of Ninja did.

    Attributes:
        rows: What its log has of each output that was made.
        elapsed: How long its tasks took, added up.
        processor: The seconds of processors that they took together; 0 where that is not known.
    """

    rows: Mapping[str, LogRow]
    elapsed: float
    processor: float

    @property
    def objects(self) -> tuple[str, ...]:
        """What was compiled."""
        return tuple(output for output in self.rows if is_object(output))

    def seconds_of(self, outputs: Iterable[str]) -> float:
        """Return the processor time of some of its outputs, by their share of the elapsed time; 0 if not known."""
        shared = sum(self.rows[output].seconds for output in outputs)
        return shared * self.processor / self.elapsed if self.elapsed else 0.0


@dataclass(frozen=True, slots=True)
class Measured:
    """How long compilations took.

    Attributes:
        seconds: By their outputs, the latest last.
        elapsed: Whether other programs are in some of them, since the processor time is not known.
    """

    seconds: Mapping[str, float]
    elapsed: bool


def compiles_elsewhere(job: BuildJob) -> bool:
    """Tell whether compilers run below a server or on other machines, so that Ninja's processor time has no say."""
    named = {**job.environ, **job.request.defines}
    words = [value for name, value in named.items() if name.endswith("_COMPILER_LAUNCHER") or name == "CCACHE_PREFIX"]
    return any(PurePath(word).stem in _ELSEWHERE for words in words for word in words.replace(";", " ").split())


def run_of(before: Mapping[str, LogRow], after: Mapping[str, LogRow], processor: float) -> NinjaRun:
    """Return what was made between two looks at Ninja's log.

    Args:
        before: The log before.
        after: The log after.
        processor: The processor time between them; 0 where that is not known.
    """
    rows = {output: row for output, row in after.items() if before.get(output) != row}
    tasks = set(rows.values())  # the outputs of one task have equal rows
    return NinjaRun(rows, sum(task.seconds for task in tasks), processor)


def keep_times(job: BuildJob, run: NinjaRun, cached: Collection[str]) -> None:
    """Keep the processor time of what was compiled.

    Args:
        job: The build.
        run: The run that ended well.
        cached: Objects that came out of the compile cache, which say nothing of compilers.
    """
    if not run.objects or not run.processor:
        return
    log = read_log(job.folder)
    kept = {output: row for output, row in _kept(job).items() if output in log and output not in run.rows}
    for output in run.objects:
        row = run.rows[output]
        seconds = 0.0 if output in cached else round(run.seconds_of([output]), 3)
        kept[output] = {"row": _mark(row), "seconds": seconds}
    write_atomic(_file(job), json.dumps(kept) + "\n")


def measured(job: BuildJob) -> Measured:
    """Return how long compilations took: their processor time where it was kept.

    A kind of source of which enough was kept goes by that alone; of the others, Ninja's log has the elapsed time.
    """
    log, kept = read_log(job.folder), _kept(job)
    known = {output: float(kept[output]["seconds"]) for output, row in log.items() if _is_of(kept.get(output), row)}
    counts = Counter(kind_of_object(output) for output, seconds in known.items() if seconds)
    kinds = {kind for kind, count in counts.items() if count >= ENOUGH}
    seconds: dict[str, float] = {}
    for output, row in log.items():
        if output in known:
            seconds[output] = known[output]
        elif is_object(output) and kind_of_object(output) not in kinds:
            seconds[output] = row.seconds
    return Measured(seconds, elapsed=any(output not in known for output in seconds))


def _file(job: BuildJob) -> Path:
    return job.notes / _NAME


def _mark(row: LogRow) -> list[int]:
    return [row.start, row.end, row.stamp]


def _is_of(entry: Any, row: LogRow) -> bool:
    """Tell whether what was kept is of the compilation that the log has, and no earlier one."""
    return isinstance(entry, dict) and entry.get("row") == _mark(row) and isinstance(entry.get("seconds"), int | float)


def _kept(job: BuildJob) -> dict[str, Any]:
    try:
        found = json.loads(read_text(_file(job)))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
