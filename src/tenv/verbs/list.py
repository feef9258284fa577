"""Find the environments of the project and of the user."""

from dataclasses import dataclass
from typing import Any

from tenv.environment.state import Environment, State, Status, environments_in
from tenv.project.context import Context
from tenv.verbs.lock_standing import LockStanding, Standing, standing_of

__all__ = ["ListedEnvironment", "find_environments", "state_word"]


@dataclass(frozen=True, slots=True)
class ListedEnvironment:
    """A row of `tenv list`.

    Attributes:
        environment: The environment.
        state: Its state.
        standing: How it stands to its lock.
    """

    environment: Environment
    state: State
    standing: LockStanding

    @property
    def fit(self) -> bool:
        """Whether it is ready and not stale."""
        return self.state.status is Status.READY and self.standing.word is Standing.CURRENT

    @property
    def reason(self) -> str:
        """Why it is not usable; empty if its state is enough."""
        return self.standing.reason

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {
            "target": self.state.target,
            "prefix": str(self.environment.prefix),
            "state": state_word(self.state, self.standing),
            "reason": self.reason or None,
            "lock_digest": self.state.lock,
            "bytes": self.state.bytes,
            "python": self.state.python,
        }


def state_word(state: State, standing: LockStanding) -> str:
    """Return the state of an environment as one word: ``stale`` for a ready one that differs from its lock."""
    return Standing.STALE.value if standing.word is Standing.STALE else state.status.value


def find_environments(context: Context) -> list[ListedEnvironment]:
    """Return the environments of the project, then those of the user's data folder."""
    folders = dict.fromkeys((context.places.environments(), context.places.data / "envs"))
    found = [environment for folder in folders for environment in environments_in(folder)]
    return [
        ListedEnvironment(environment, state, standing_of(context, environment, state))
        for environment in found
        if (state := environment.state())
    ]
