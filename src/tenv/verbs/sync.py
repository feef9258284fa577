"""Update an environment to its lock before it is used."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.project.context import Context
from tenv.verbs.create import Created, CreateRequest, LockMode, create
from tenv.verbs.kept_locks import mode_by_variables

if TYPE_CHECKING:
    from tenv.checks.rules.interface import Finding


def sync(
    context: Context,
    target: str | None,
    prefix: Path | None,
    tell: "Callable[[Sequence[Finding]], None]",
    features: Sequence[str] = (),
) -> Created:
    """Create or update the environment of a target; never write a lock.

    Args:
        context: The context of the verb.
        target: The target; where None, the one of the environment in `prefix`, or the default target.
        prefix: The environment's folder, if it is not the default one.
        tell: Receives the findings.
        features: The features to install beside those that the environment holds.

    Raises:
        LockMissingError, LockStaleError: There is no lock, or it does not satisfy its manifest.
        TenvError: As `create`.
    """
    state = context.environment("", prefix).state() if prefix else None
    name = target or (state.target if state else None) or context.default_target()
    held = (context.environment(name, prefix).state() if features else None) or None
    named = tuple(sorted({*features, *(held.features if held else ())})) if features else None
    mode = LockMode.FROZEN if mode_by_variables() is LockMode.FROZEN else LockMode.LOCKED
    return create(context, CreateRequest(name, prefix, mode, features=named), tell)
