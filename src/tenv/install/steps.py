"""Steps: what an environment is made in, each with the name that progress shows and that a failure gives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tenv.core.errors import TenvError
from tenv.install.creation import Creation

__all__ = ["Step", "run_steps"]


def _always(_: Creation) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        name: What is done in it, as one word.
        do: Does it.
        needed: Tells whether there is anything to do.
        named: Whether a failure names it; not where the error is what the step was there to find.
    """

    name: str
    do: Callable[[Creation], None]
    needed: Callable[[Creation], bool] = _always
    named: bool = True


def run_steps(job: Creation, steps: Sequence[Step]) -> None:
    """Run the steps that are needed, in turn; an error that one raises names it."""
    for step in steps:
        if not step.needed(job):
            continue
        job.context.progress.phase(f"{step.name} {job.target.name}")
        try:
            step.do(job)
        except TenvError as error:
            error.step = step.name if step.named else ""
            raise
