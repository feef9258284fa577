"""The time that a running build still takes, from what its tasks cost and how fast they went so far."""

from tenv.builds.task_costs import kind_of, seconds_of
from tenv.core.dataclass import dataclass

__all__ = ["Expectation", "Pace"]

_SETTLED = 0.1
"""The share of the work after which the pace alone says what is left. A tenth of PyTorch's tasks has sources of all
kinds in it; an estimate that is wrong, since the machine was busy when it was made, is forgotten by then."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a build is expected to take.

    Attributes:
        seconds: How long, with as many jobs as are run.
        work: The sum of what its tasks cost, in seconds of the table's machine.
        architectures: For how many GPU architectures a CUDA file is compiled.
    """

    seconds: float
    work: float
    architectures: int


class Pace:
    """Says what is left of a build, one line of Ninja after the other."""

    def __init__(self, expected: Expectation | None) -> None:
        self._expected = expected
        self._work = 0.0

    def add(self, description: str) -> None:
        """Count a task that is done, as Ninja describes it."""
        task = kind_of(description)
        if task is not None and self._expected is not None:
            self._work += seconds_of(task, self._expected.architectures)

    def left(self, spent: float, done: int, total: int) -> float:
        """Return the seconds that are left.

        Args:
            spent: Seconds since the start.
            done: How many tasks are done.
            total: How many there are.
        """
        if self._expected is None or not self._work or self._work >= self._expected.work:
            return spent * (total - done) / max(done, 1)
        share = self._work / self._expected.work
        by_pace = spent * (1 - share) / share
        by_plan = max(self._expected.seconds - spent, 0.0)
        weight = min(1.0, share / _SETTLED)
        return by_pace * weight + by_plan * (1 - weight)
