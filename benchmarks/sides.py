"""Sides of a comparison: programs that take turns, and what their times say.

The sides of a row run one after the other in each round, so what else the machine does meets all of them. A figure is
the median over the rounds. An aim is met when the upper end of the 95 % interval of the median ratio meets it; the
interval is that of order statistics, which assumes no distribution.
"""

import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# A process counts the memory of the one that started it as its own, so that one is kept small.
_STARTER = """\
import os, sys, time
start = time.perf_counter()
_, status, used = os.wait4(os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ), 0)
seconds = time.perf_counter() - start
os.write(int(sys.argv[1]), b"%f %f %d" % (seconds, used.ru_utime + used.ru_stime, used.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status) and 1)
"""
_LEVEL = 0.95


@dataclass(frozen=True)
class Run:
    """One run of a program: wall and CPU time in seconds, and the memory of its largest process in bytes."""

    seconds: float
    cpu: float
    memory: int

    def __add__(self, other: "Run") -> "Run":
        """Join two runs that follow each other."""
        return Run(self.seconds + other.seconds, self.cpu + other.cpu, max(self.memory, other.memory))


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        work: What is done.
        ours: tenv's way, run once.
        theirs: The ways of the peers, by name; the aim counts against the first.
        aim: The largest ratio of the wall times that counts as met; None for a row without an aim.
        rounds: How often each side runs.
        each: How often one run does the work.
        most: The largest difference of the wall times in seconds, in place of a ratio; None for a ratio.
        first: What is done before each run of each side, and not measured.
        last: What is done after the last one; raises SystemExit where the sides did not do the same.
        floor: What no program that keeps tenv's checks and its libraries can leave out, in words, and a way that does
            nothing else; None for a row whose aim needs none.
    """

    work: str
    ours: Callable[[], Run]
    theirs: Mapping[str, Callable[[], Run]]
    aim: float | None = None
    rounds: int = 20
    each: int = 1
    most: float | None = None
    first: Callable[[], object] = lambda: None
    last: Callable[[], object] = lambda: None
    floor: tuple[str, Callable[[], Run]] | None = None


@dataclass(frozen=True)
class Figure:
    """A row when it has been measured.

    Attributes:
        row: The row.
        ours: The runs of tenv.
        theirs: The runs of the peers, by name.
        least: The runs of the floor; empty for a row without one.
    """

    row: Row
    ours: Sequence[Run]
    theirs: Mapping[str, Sequence[Run]]
    least: Sequence[Run] = ()

    def compared(self, peer: str) -> tuple[float, float, float]:
        """Return the median of the rounds' ratios (differences for a row with ``most``), and the interval's ends."""
        return self._compare(self.ours, self.theirs[peer])

    def floor_compared(self) -> tuple[float, float, float]:
        """Return the same of the floor beside the first peer."""
        return self._compare(self.least, next(iter(self.theirs.values())))

    def _compare(self, left: Sequence[Run], right: Sequence[Run]) -> tuple[float, float, float]:
        pairs = [(ours.seconds, theirs.seconds) for ours, theirs in zip(left, right, strict=True)]
        if self.row.most is not None:
            return interval([(ours - theirs) / self.row.each for ours, theirs in pairs])
        return interval([ours / theirs for ours, theirs in pairs])

    def is_met(self) -> bool | None:
        """Return whether the aim is met; None for a row without one."""
        limit = self.row.aim if self.row.most is None else self.row.most
        return None if limit is None else self.compared(next(iter(self.theirs)))[2] <= limit


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median of values and the ends of its interval of 95 %; of fewer than six values, their ends."""
    ordered, count = sorted(values), len(values)
    below, rank = 0.0, 0
    while rank < count // 2 and below + math.comb(count, rank) / 2**count <= (1 - _LEVEL) / 2:
        below += math.comb(count, rank) / 2**count
        rank += 1
    rank = max(rank - 1, 0)
    return statistics.median(ordered), ordered[rank], ordered[count - 1 - rank]


def run(words: Sequence[object], folder: Path, environment: Mapping[str, str], text: Path | None = None) -> Run:
    """Run a program to its end; raises SystemExit with its output where it fails."""
    command = [str(word) for word in words]
    told, tell = os.pipe()
    with (text or Path(os.devnull)).open("rb") as stdin, tempfile.TemporaryFile() as talk:
        starter = [sys.executable, "-I", "-S", "-c", _STARTER, str(tell), *command]
        done = subprocess.run(
            starter, cwd=folder, env=environment, stdin=stdin, stdout=talk, stderr=talk, pass_fds=[tell], check=False
        )
        os.close(tell)
        with os.fdopen(told) as answer:
            seconds, cpu, kibibytes = answer.read().split()
        if done.returncode:
            talk.seek(0)
            raise SystemExit(f"{' '.join(command)} fails:\n{talk.read().decode(errors='replace')}")
    return Run(float(seconds), float(cpu), int(kibibytes) * 1024)


def measure(row: Row) -> Figure:
    """Run the sides of a row in turns; the first turn fills the caches and is not counted."""
    ours: list[Run] = []
    theirs: dict[str, list[Run]] = {name: [] for name in row.theirs}
    least: list[Run] = []
    for _ in range(row.rounds + 1):
        _prepare(row)
        ours.append(row.ours())
        for name, way in row.theirs.items():
            _prepare(row)
            theirs[name].append(way())
        if row.floor:
            _prepare(row)
            least.append(row.floor[1]())
    return Figure(row, ours[1:], {name: runs[1:] for name, runs in theirs.items()}, least[1:])


def _prepare(row: Row) -> None:
    """Do what comes before a side.

    The disk has written what the sides before left: where only one of them waits for its files to be on the disk, it
    would wait for those of the others.
    """
    os.sync()
    row.first()
