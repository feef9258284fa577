"""Whether locks may be written: `TENV_LOCKED` and `TENV_FROZEN` forbid it to every command."""

from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.errors import LockStaleError
from tenv.project.context import is_set

if TYPE_CHECKING:
    from tenv.verbs.create import LockMode

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
