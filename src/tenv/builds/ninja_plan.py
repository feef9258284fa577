"""Ninja's plan and its log: the tasks that are left, and the time that each compilation took.

Ninja notes when a task began and when it ended. Other programs stretch that time: at a load of 6.7 on 2 cores, to 3.3
times the one of a quiet machine. The system counts the processor time of all tasks of a run together, and each is taken
to have had its share of it. These times are kept beside the build folder's stamp, by output.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

from tenv.builds.build_environ import cache_choice
from tenv.builds.build_job import BuildJob
from tenv.builds.compile_cache import CacheChoice, CacheUse, counts, use_since
from tenv.builds.task_costs import Task, TaskKind, kind_of
from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.file_content import noted_json
from tenv.core.files import write_atomic
from tenv.core.missing import Missing
from tenv.core.untrusted import whole_number

_STATUS = re.compile(r"^\[ *\d+/\d+\] ")
_SECONDS = 300.0
_OBJECT = re.compile(r"\.(cu|cpp|cc|cxx|c|S|s|asm)\.o(bj)?$")
_KINDS = {"cu": TaskKind.CUDA, "c": TaskKind.C, "S": TaskKind.C, "s": TaskKind.C, "asm": TaskKind.C}


def remaining(folder: Path, names: Iterable[str], environ: Mapping[str, str]) -> tuple[Task, ...] | None:
    """Return the tasks that Ninja has left for some of its targets; None where it has no plan.

    The build file is named by its whole path: Ninja then does not take it for an output of CMake, and lists the tasks
    instead of ending at "Re-running CMake", as PyTorch's globs would have it do each time. Where another generator was
    used, the compile commands are counted.
    """
    program = process.find("ninja", environ.get("PATH"))
    if program and (folder / "build.ninja").is_file():
        plain = {**environ, "NINJA_STATUS": "[%f/%t] "}
        words = [program, "-n", "-f", str(folder / "build.ninja"), *names]
        answer = process.run(words, environment=plain, folder=folder, timeout=_SECONDS)
        if not isinstance(answer, Missing) and answer.status == 0:
            rows = [_STATUS.sub("", line) for line in answer.stdout.splitlines() if _STATUS.match(line)]
            return tuple(task for row in rows if (task := kind_of(row)))
    return _commands(folder)


def damage(folder: Path, environ: Mapping[str, str]) -> str:
    """Return Ninja's error about a build file that it can't read; empty for a readable one, or without one.

    Missing sources or targets do not count: CMake may run again first, which makes the file anew.
    """
    program = process.find("ninja", environ.get("PATH"))
    if program is None or not (folder / "build.ninja").is_file():
        return ""
    answer = process.run([program, "-t", "rules"], environment=environ, folder=folder, timeout=_SECONDS)
    if isinstance(answer, Missing) or answer.status == 0:
        return ""
    return next((line for line in answer.stderr.splitlines() if line.startswith("ninja: error: ")), "")


def compile_commands(folder: Path, environ: Mapping[str, str]) -> dict[Path, str]:
    """Return the commands of Ninja by their source, after CMake has seen each edit of its files; empty without any."""
    program = process.find("ninja", environ.get("PATH"))
    if program is None or not (folder / "build.ninja").is_file():
        return {}
    process.run([program, "build.ninja"], environment=environ, folder=folder, timeout=_SECONDS)
    answer = process.run([program, "-t", "compdb"], environment=environ, folder=folder, timeout=_SECONDS)
    try:
        rows = [] if isinstance(answer, Missing) else json.loads(answer.stdout)
        return {folder / row["file"]: str(row["command"]) for row in rows if is_object(row.get("output", ""))}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return {}


def _commands(folder: Path) -> tuple[Task, ...] | None:
    try:
        rows = json.loads((folder / "compile_commands.json").read_text(encoding="utf-8"))
        outputs = [str(row.get("output") or f"{row['file']}.o") for row in rows]
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    return tuple(Task(kind_of_object(output), output) for output in outputs)


def kind_of_object(output: str) -> TaskKind:
    """Return the kind of the task that makes an object, by its name; `TaskKind.OTHER` for another output."""
    match = _OBJECT.search(output)
    return _KINDS.get(match[1], TaskKind.CXX) if match else TaskKind.OTHER


@dataclass(frozen=True, slots=True)
class LogRow:
    """A row of Ninja's log."""

    start: int
    """When its task began, in milliseconds since the start of that Ninja."""
    end: int
    """When it ended."""
    stamp: int
    """The time stamp that Ninja notes; 0 in logs of old versions."""
    command: str
    """The digest of the command; the outputs of one task share it."""

    @property
    def seconds(self) -> float:
        """How long the task took, elapsed."""
        return (self.end - self.start) / 1000


def read_log(folder: Path) -> dict[str, LogRow]:
    """Return Ninja's log by outputs, the latest last; empty without one.

    The log is in the order of the time stamps that Ninja notes, but where Ninja has rewritten it.
    """
    try:
        lines = (folder / ".ninja_log").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    found: dict[str, LogRow] = {}
    for line in lines:
        fields = line.split("\t")
        start, end, stamp = map(whole_number, (*fields[:3], "", "", "")[:3])
        if start is not None and end is not None and stamp is not None and fields[3:]:
            found.pop(fields[3], None)  # old versions of Ninja note no time: then the order of the lines counts
            found[fields[3]] = LogRow(start, end, stamp, "".join(fields[4:5]))
    return dict(sorted(found.items(), key=lambda row: row[1].stamp))


def is_object(output: str) -> bool:
    """Return whether an output of Ninja is an object of one source."""
    return _OBJECT.search(output) is not None


def targets(folder: Path, environ: Mapping[str, str]) -> frozenset[str]:
    """Return the names of all outputs of Ninja."""
    program = process.find("ninja", environ.get("PATH"))
    if program is None or not (folder / "build.ninja").is_file():
        return frozenset()
    answer = process.run([program, "-t", "targets", "all"], environment=environ, folder=folder, timeout=_SECONDS)
    if isinstance(answer, Missing) or answer.status:
        return frozenset()
    return frozenset(line.rpartition(": ")[0] for line in answer.stdout.splitlines())


ENOUGH = 3
"""How many compilations of a kind must have been measured before they show how fast the machine is."""

_NAME = "processor-times.json"
_ELSEWHERE = frozenset(("sccache", "distcc", "icecc", "recc", "rewrapper"))
"""Programs whose compilations are no children of Ninja, but of a server here or on another machine."""


@dataclass(frozen=True, slots=True)
class NinjaRun:
    """One run of Ninja."""

    rows: Mapping[str, LogRow]
    """The rows of its log, by output."""
    elapsed: float
    """How long its tasks took, added up."""
    processor: float
    """The seconds of processors that they took together; 0 where that is not known."""

    @property
    def objects(self) -> tuple[str, ...]:
        """The compiled objects."""
        return tuple(output for output in self.rows if is_object(output))

    def seconds_of(self, outputs: Iterable[str]) -> float:
        """Return the processor time of some of its outputs, by their share of the elapsed time; 0 if not known."""
        shared = sum(self.rows[output].seconds for output in outputs)
        return shared * self.processor / self.elapsed if self.elapsed else 0.0


@dataclass(frozen=True, slots=True)
class Measured:
    """How long compilations took."""

    seconds: Mapping[str, float]
    """By their outputs, the latest last."""
    elapsed: bool
    """Whether other programs are in some of them, since the processor time is not known."""


def compiles_elsewhere(job: BuildJob) -> bool:
    """Return whether compilers run below a server or elsewhere, so that Ninja's processor time leaves them out."""
    named = {**job.environ, **job.request.defines}
    words = [value for name, value in named.items() if name.endswith("_COMPILER_LAUNCHER") or name == "CCACHE_PREFIX"]
    return any(PurePath(word).stem in _ELSEWHERE for words in words for word in words.replace(";", " ").split())


def run_of(before: Mapping[str, LogRow], after: Mapping[str, LogRow], processor: float) -> NinjaRun:
    """Return the run between two readings of Ninja's log.

    Args:
        before: The log before.
        after: The log after.
        processor: The processor time between them; 0 where that is not known.
    """
    rows = {output: row for output, row in after.items() if before.get(output) != row}
    tasks = set(rows.values())  # the outputs of one task have equal rows
    return NinjaRun(rows, sum(task.seconds for task in tasks), processor)


def keep_times(job: BuildJob, run: NinjaRun, cached: Collection[str]) -> None:
    """Keep the processor time of compilations.

    Args:
        job: The build.
        run: The run that ended well.
        cached: Objects from the compile cache, whose time is no time of a compiler.
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
    """Return whether a kept time is of the compilation in the log, and of no earlier one."""
    return isinstance(entry, dict) and entry.get("row") == _mark(row) and isinstance(entry.get("seconds"), int | float)


def _kept(job: BuildJob) -> dict[str, Any]:
    found = noted_json(_file(job))
    return found if isinstance(found, dict) else {}


class CompileWatch:
    """Watches a run of Ninja that begins now.

    Attributes:
        cache: The compile cache of the build.
        cache_before: Its counts so far; None where they are not known.
    """

    def __init__(self, job: BuildJob) -> None:
        self.cache: CacheChoice = cache_choice(job, job.environ)
        self.cache_before = counts(self.cache, job.environ)
        job.log("ccache").unlink(missing_ok=True)  # its notes from now on are of this run
        self._job, self._log = job, read_log(job.folder)

    def used(self) -> CacheUse:
        """Return the hits and misses of the cache since."""
        return use_since(self.cache, self._job.environ, self._job.log("ccache"), self.cache_before)

    def keep(self, processor: float, used: CacheUse) -> NinjaRun:
        """Keep the times of compilations, after a run that ended well.

        Args:
            processor: The processor time of the run.
            used: The hits and misses of the cache.
        """
        known = 0.0 if compiles_elsewhere(self._job) else processor
        run = run_of(self._log, read_log(self._job.folder), known)
        keep_times(self._job, run, served(run, used))
        return run


def served(run: NinjaRun, used: CacheUse) -> frozenset[str]:
    """Return the objects of a run that came out of the cache, as far as it names them."""
    if used.hits and not used.misses:
        return frozenset(run.objects)
    names = used.served - used.missed
    return frozenset(output for output in run.objects if PurePath(output).stem in names)
