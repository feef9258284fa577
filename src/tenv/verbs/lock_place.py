"""The folder that a lock is written to, and the return to the lock beside the manifest."""

from dataclasses import dataclass, replace
from pathlib import Path

from tenv.core.errors import LockMissingError, UsageError
from tenv.project.context import Context
from tenv.targets.search import Origin, Target

__all__ = ["Reset", "replaces_built_in", "require_user", "reset_lock", "with_user"]


def with_user(context: Context, *, user: bool) -> Context:
    """Return the context with `user`: one that writes to the user's configuration folder."""
    return replace(context, places=context.places.outside()) if user else context


def replaces_built_in(target: Target) -> bool:
    """Return whether writing the lock of a target would replace a built-in lock everywhere outside projects."""
    return target.origin is Origin.BUILT_IN and target.home_origin is Origin.USER


def require_user(target: Target, command: str, *, user: bool) -> None:
    """Raise an error before a lock replaces a built-in one everywhere, unless the user requests that.

    Args:
        target: The target, whose lock is about to be written.
        command: What the user typed, such as ``tenv update``.
        user: Whether `--user` is given.

    Raises:
        UsageError: The target is built-in, no project is here, and `--user` is not given.
    """
    if user or not replaces_built_in(target):
        return
    raise UsageError(
        f"there is no project here, and {target.name} is built-in: its lock would be written to {target.lock_home}, "
        "and count in place of the built-in one wherever there is no project",
        hint=f"`{command} --user {target.name}` does that; in a project (`tenv init`), the lock is written there",
    )


@dataclass(frozen=True, slots=True)
class Reset:
    """A removed lock, and the lock in use after it.

    Attributes:
        removed: The file that was removed.
        target: The target, with the lock that counts now.
    """

    removed: Path
    target: Target


def reset_lock(context: Context, name: str) -> Reset:
    """Remove the lock that replaces the one beside the manifest.

    Raises:
        LockMissingError: There is none: the lock beside the manifest is the one that counts.
    """
    target = context.places.find(name)
    if target.lock_origin is None or target.lock_origin is target.origin:
        raise LockMissingError(
            f"there is nothing to reset: no lock replaces the one beside the manifest of {name} ({target.owners})",
            hint=f"`tenv show {name}` names both files",
        )
    target.lock_file.unlink()
    return Reset(target.lock_file, context.places.find(name))
