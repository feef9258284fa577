"""Find the environments at hand."""

from collections.abc import Iterator
from dataclasses import dataclass

from tenv.environment.state import Environment, State, Status, environments_in
from tenv.environment.trust import Fault
from tenv.project.context import Context

__all__ = ["Listed", "find_environments"]


@dataclass(frozen=True, slots=True)
class Listed:
    """An environment that was found.

    Attributes:
        environment: The environment.
        state: What is known about it; of one that this user did not make, no more than that it is broken.
        fault: Why it can't be used; None for one that can.
    """

    environment: Environment
    state: State
    fault: Fault | None

    @property
    def word(self) -> str:
        """The word for its state."""
        return (Status.BROKEN if self.fault else self.state.status).value


def find_environments(context: Context) -> list[Listed]:
    """Return the environments of the project, then those of the user's data folder."""
    folders = dict.fromkeys((context.places.environments(), context.places.data / "envs"))
    return [row for folder in folders for found in environments_in(folder) for row in _look(context, found)]


def _look(context: Context, environment: Environment) -> Iterator[Listed]:
    fault = context.fault_of(environment)
    unknown = State(Status.BROKEN, environment.prefix.name)
    state = unknown if fault and not fault.is_ours else environment.state()
    if state:
        yield Listed(environment, state, fault)
