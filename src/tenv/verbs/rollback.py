"""Go back to the lock that an environment was made from before."""

from dataclasses import dataclass
from pathlib import Path

from tenv.core.errors import LockMissingError
from tenv.core.files import digest
from tenv.environment.state import Environment, State
from tenv.locks.difference import Difference
from tenv.locks.lock_file import read_lock
from tenv.project.context import Context
from tenv.verbs.create import Created, CreateRequest, LockMode, create
from tenv.verbs.diff import difference_of

__all__ = ["RollbackPoint", "find_way", "go_back"]


@dataclass(frozen=True, slots=True)
class RollbackPoint:
    """A way back.

    Attributes:
        target: The target.
        environment: Its environment.
        lock: The kept lock to go back to.
        difference: What changes by that; None when the lock that it is made from is not known.
    """

    target: str
    environment: Environment
    lock: Path
    difference: Difference | None


def find_way(context: Context, name: str | None, prefix: Path | None) -> RollbackPoint:
    """Return the way back to the lock before.

    Raises:
        EnvironmentMissingError: There is no environment.
        LockMissingError: It has been made from no other lock before.
    """
    name = name or (context.default_target() if prefix is None else prefix.name)
    environment = context.environment(name, prefix)
    state = environment.state() or environment.require_ready(name)  # one that is not ready can be brought back, too
    target = state.target
    kept = environment.kept_locks()
    now = _current(kept, state)
    earlier = kept[: kept.index(now)] if now else kept
    if not earlier:
        raise LockMissingError(
            f"there is nothing to go back to: {environment.prefix} keeps no lock from before this one",
            hint=f"`tenv create {target} --lock-file FILE --frozen` installs a lock that you have, from git say",
        )
    before = read_lock(earlier[-1], target)
    difference = difference_of(context, read_lock(now, target), before, [state.platform]) if now else None
    return RollbackPoint(target, environment, earlier[-1], difference)


def _current(kept: list[Path], state: State) -> Path | None:
    """Return the kept lock that an environment is made from; None when the last installation did not end well."""
    return next((path for path in reversed(kept) if state.lock and digest(path) == state.lock), None)


def go_back(context: Context, way: RollbackPoint, prefix: Path | None, *, wait: bool) -> Created:
    """Install the lock before; the lock of the project stays as it is."""
    request = CreateRequest(way.target, prefix, LockMode.KEPT, way.lock, wait=wait)
    return create(context, request)
