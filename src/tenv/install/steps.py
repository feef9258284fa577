"""Named steps. Progress shows the name of the running step, and an error names the step that failed."""

from collections.abc import Callable, Sequence

from tenv.core.dataclass import dataclass
from tenv.core.errors import TenvError
from tenv.install.creation import Creation

__all__ = ["Step", "run_steps"]


def _always(_: Creation) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        name: The name, one word.
        do: Runs the step.
        needed: Returns whether the step has work.
        named: Whether an error names the step; false for a step whose purpose is to find the error.
    """

    name: str
    do: Callable[[Creation], None]
    needed: Callable[[Creation], bool] = _always
    named: bool = True


def run_steps(job: Creation, steps: Sequence[Step]) -> None:
    """Run the steps that have work, in order; an error names its step."""
    for step in steps:
        if not step.needed(job):
            continue
        job.context.progress.phase(f"{step.name} {job.target.name}")
        try:
            step.do(job)
        except TenvError as error:
            error.step = step.name if step.named else ""
            raise
