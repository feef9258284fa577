"""Where a lock is written to, whether it may be written, and the return to the lock beside the manifest.

`TENV_LOCKED` and `TENV_FROZEN` forbid it to every command.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass
from tenv.core.errors import LockMissingError, LockStaleError, UsageError
from tenv.core.files import write_atomic
from tenv.core.truth_words import is_set
from tenv.project.context import Context
from tenv.targets.config import PROJECT_FILE
from tenv.targets.search import Origin, Place, Target, makes_project

if TYPE_CHECKING:
    from tenv.verbs.create import LockMode

_PROJECT_TEXT = "# A tenv project: the locks of its targets lie in locks/, their manifests in manifests/.\n"


class LockHome(StrEnum):
    """The folder that the user wants a lock to be written to.

    Attributes:
        NEAREST: The nearest place: the project, else the user's configuration folder.
        USER: The user's configuration folder.
        PROJECT: The project. A PyTorch checkout that lies in no project becomes one.
    """

    NEAREST = "nearest"
    USER = "user"
    PROJECT = "project"


def place_of(context: Context, home: LockHome) -> Context:
    """Return the context that writes locks to a place.

    Raises:
        UsageError: `PROJECT` is wanted, and the working folder lies neither in a project nor in a PyTorch checkout.
    """
    places = context.places
    if home is LockHome.USER:
        return replace(context, places=places.outside())
    if home is LockHome.NEAREST or places.project:
        return context
    if places.checkout is None:
        places.require_trust()
        raise UsageError("there is no project here", hint="`tenv init` makes this folder a project")
    return begun_project(context, places.checkout)


def begun_project(context: Context, folder: Path) -> Context:
    """Return the context in which a folder that is no project is one, as a manifest in it makes it."""
    own, places = Place(Origin.PROJECT, folder), context.places
    return replace(context, places=replace(places, project=folder, places=(own, *places.places), checkout=None))


def keep_project(context: Context) -> None:
    """Write the ``tenv.toml`` by which the folder that a lock was written to is found as a project again."""
    project = context.places.project
    if project is not None and not makes_project(project):
        write_atomic(project / PROJECT_FILE, _PROJECT_TEXT)
        context.progress.say(f"{project / PROJECT_FILE} written: the checkout is a project now")


def require_place(
    context: Context, target: Target, command: str, home: LockHome, is_kept: Callable[[], bool] = lambda: False
) -> None:
    """Raise an error before a lock is written where the user may not expect it, unless they say where.

    Args:
        context: The context of the verb.
        target: The target, whose lock is about to be written.
        command: The command that the user typed, such as ``tenv update``.
        home: The place that the user names.
        is_kept: Returns whether the lock in use satisfies its manifest, so that none is written.

    Raises:
        UsageError: The user names no place, and the lock would replace a built-in one outside projects, or change the
            project around a PyTorch checkout.
    """
    beside = target.lock_home == target.file.parent.parent / "locks" / f"{target.name}.lock"
    leaves = context.places.checkout is not None and target.home_origin is Origin.PROJECT and not beside
    built_in = target.origin is Origin.BUILT_IN and target.home_origin is Origin.USER
    if home is not LockHome.NEAREST or not (leaves or built_in) or is_kept():
        return
    ways = f"`{command} --user {target.name}` does that"
    if leaves:
        raise UsageError(
            f"{context.places.checkout} is a PyTorch checkout without manifests: the lock of {target.name} would be "
            f"written to {target.lock_home}, and count in the whole project",
            hint=f"`{command} --project {target.name}` does that; with `--user` it counts outside projects",
        )
    here = f"`{command} --project {target.name}` writes it here" if context.places.checkout else ""
    raise UsageError(
        f"there is no project here, and {target.name} is built-in: its lock would be written to {target.lock_home}, "
        "and count in place of the built-in one wherever there is no project",
        hint=f"{ways}; {here or 'in a project (`tenv init`), the lock is written there'}",
    )


@dataclass(frozen=True, slots=True)
class Reset:
    """A removed lock, and the lock in use after it."""

    removed: Path
    """The file that was removed."""
    target: Target
    """The target, with the lock that counts now."""


def reset_lock(context: Context, name: str) -> Reset:
    """Remove the lock that replaces the one beside the manifest.

    Raises:
        LockMissingError: There is none: the lock beside the manifest is the one that counts.
        LockStaleError: `TENV_LOCKED` or `TENV_FROZEN` is set.
    """
    target = context.places.find(name)
    if target.lock_origin is None or target.lock_origin is target.origin:
        raise LockMissingError(
            f"there is nothing to reset: no lock replaces the one beside the manifest of {name} ({target.owners})",
            hint=f"`tenv show {name}` names both files",
        )
    require_kept(target.lock_file, f"tenv lock {target.name} --reset")
    target.lock_file.unlink()
    return Reset(target.lock_file, context.places.find(name))


_VARIABLES = ("TENV_LOCKED", "TENV_FROZEN")


def keeping_variable() -> str:
    """Return the name of the variable that forbids to write locks; empty if none does.

    Raises:
        UsageError: The value of a variable is neither yes nor no.
    """
    return next((name for name in _VARIABLES if is_set(name)), "")


def mode_by_variables() -> "LockMode":
    """Return how `create` treats the lock where no option says so."""
    from tenv.verbs.create import LockMode  # late: commands that create nothing need none of it

    modes = {"TENV_LOCKED": LockMode.LOCKED, "TENV_FROZEN": LockMode.FROZEN}
    return modes.get(keeping_variable(), LockMode.UPDATE)


def require_kept(path: Path, command: str, ways: str = "") -> None:
    """Raise an error if a variable forbids to write locks.

    Args:
        path: The lock that would be written.
        command: The command that writes it.
        ways: Another way, for the hint.

    Raises:
        LockStaleError: `TENV_LOCKED` or `TENV_FROZEN` is set.
    """
    if variable := keeping_variable():
        hint = f"`{variable}=0 {command}` writes it" + (f"; {ways}" if ways else "")
        raise LockStaleError(f"{path} would change, and {variable} is set", hint=hint)
