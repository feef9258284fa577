"""Find the environments of the project and of the user."""

from collections.abc import Iterator
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.environment.built_torch import BuiltTorch, built_torch
from tenv.environment.state import Environment, State, Status, environments_in
from tenv.environment.trust import Fault
from tenv.project.context import Context
from tenv.verbs.lock_standing import LockStanding, Standing, standing_of


@dataclass(frozen=True, slots=True)
class ListedEnvironment:
    """A row of `tenv list`."""

    environment: Environment
    """The environment."""
    state: State
    """Its state; of one that this user did not make, no more than that it is broken."""
    standing: LockStanding
    """How it stands to its lock."""
    fault: Fault | None = None
    """Why it can't be used; None for one that can."""
    torch: BuiltTorch | None = None
    """The torch that `tenv build` installed in it; None for none."""

    @property
    def fit(self) -> bool:
        """Whether it is ready, can be used and has the files of its lock."""
        return not self.fault and self.state.status is Status.READY and self.standing.word is Standing.CURRENT

    @property
    def reason(self) -> str:
        """Why it is not usable; empty if its state is enough."""
        return self.fault.reason.value if self.fault else self.standing.reason

    @property
    def sentence(self) -> str:
        """One line about an environment that is not fit."""
        if self.fault:
            return f"{self.fault.message}; {self.fault.hint}"
        return self.standing.sentence(self.state.target)

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {
            "target": self.state.target,
            "prefix": str(self.environment.prefix),
            "state": state_word(self.state, self.standing, self.fault),
            "reason": self.reason or None,
            "lock_digest": self.state.lock,
            "bytes": self.state.bytes,
            "python": self.state.python,
            "torch": self.torch.to_json() if self.torch else None,
        }


def state_word(state: State, standing: LockStanding, fault: Fault | None) -> str:
    """Return the state of an environment as one word: ``stale`` for a ready one that differs from its lock."""
    if fault:
        return Status.BROKEN.value
    return Standing.STALE.value if standing.word is Standing.STALE else state.status.value


def find_environments(context: Context) -> list[ListedEnvironment]:
    """Return the environments of the project, then those of the user's data folder."""
    folders = dict.fromkeys((context.places.environments(), context.places.data / "envs"))
    return [row for folder in folders for found in environments_in(folder) for row in _look(context, found)]


def _look(context: Context, environment: Environment) -> Iterator[ListedEnvironment]:
    unknown = State(Status.BROKEN, environment.prefix.name)
    fault = context.fault_of(environment)
    state = unknown if fault and not fault.is_ours else environment.state() or (unknown if fault else None)
    if state:
        standing = LockStanding(Standing.CURRENT) if fault else standing_of(context, environment, state)
        torch = None if fault else built_torch(environment.prefix)
        yield ListedEnvironment(environment, state, standing, fault, torch)
