"""Restore the previous lock of an environment."""

from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.errors import LockMissingError
from tenv.core.files import digest
from tenv.environment.state import Environment, State
from tenv.locks.difference import Difference
from tenv.locks.lock_file import read_lock
from tenv.project.context import Context
from tenv.verbs.create import Created, CreateRequest, LockMode, create
from tenv.verbs.diff import difference_of


@dataclass(frozen=True, slots=True)
class RollbackPoint:
    """The previous lock of an environment."""

    target: str
    """The target."""
    environment: Environment
    """Its environment."""
    lock: Path
    """The kept lock to restore."""
    difference: Difference | None
    """The difference from the present lock; None if that is unknown."""


def find_way(context: Context, name: str | None, prefix: Path | None) -> RollbackPoint:
    """Return the previous lock of an environment.

    Raises:
        EnvironmentMissingError: There is no environment.
        LockMissingError: The environment keeps no previous lock.
    """
    name = name or (context.default_target() if prefix is None else prefix.name)
    environment = context.environment(name, prefix)
    context.require_usable(environment, name, gutted=True)  # one that is not ready can be rolled back
    state = environment.state() or context.require_ready(environment, name, gutted=True)
    target = state.target
    kept = environment.kept_locks()
    now = _current(kept, state)
    earlier = kept[: kept.index(now)] if now else kept
    if not earlier:
        raise LockMissingError(
            f"{environment.prefix} keeps no previous lock",
            hint=f"`tenv create {target} --lock-file FILE --frozen` installs a lock from a file",
        )
    before = read_lock(earlier[-1], target)
    difference = difference_of(context, read_lock(now, target), before, [state.platform]) if now else None
    return RollbackPoint(target, environment, earlier[-1], difference)


def _current(kept: list[Path], state: State) -> Path | None:
    """Return the kept lock of the present environment; None if the last installation failed."""
    return next((path for path in reversed(kept) if state.lock and digest(path) == state.lock), None)


def go_back(context: Context, way: RollbackPoint, prefix: Path | None, *, wait: bool) -> Created:
    """Install the previous lock; the lock of the project does not change."""
    request = CreateRequest(way.target, prefix, LockMode.KEPT, way.lock, wait=wait)
    return create(context, request)
