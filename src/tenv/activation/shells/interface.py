"""What a shell module offers, and the list of those that there are."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tenv.activation.changes import Activation
from tenv.activation.shells import posix
from tenv.core.errors import UsageError
from tenv.targets.search import Places

__all__ = ["SHELLS", "Shell", "find_shell", "known_shells"]


class Shell(Protocol):
    """A family of shells that share their syntax."""

    @property
    def NAMES(self) -> tuple[str, ...]:  # noqa: N802 (a constant of the module)
        """The shells that it speaks to."""

    @property
    def SCRIPT(self) -> str:  # noqa: N802 (a constant of the module)
        """The name of the stored script."""

    def render_activation(self, activation: Activation) -> str:
        """Return the script that activates an environment; it can be undone to the byte and never ends the shell."""

    def render_source(self, script: str) -> str:
        """Return the command that runs a script of this shell in the running shell."""

    def render_deactivation(self) -> str:
        """Return the script that undoes the innermost activation."""

    def render_hook(self, program: Sequence[str], places: Places) -> str:
        """Return the definition of a function ``tenv`` that activates without starting Python."""

    def start(self, program: str, script: str, environment: Mapping[str, str], folder: Path) -> list[str] | None:
        """Return the words that start a shell in which a script has been run, None where this shell can't.

        What the shell needs for that is written into `folder`, an empty one, which the shell removes once it is up.
        """


SHELLS: tuple[Shell, ...] = (posix,)
"""Every module; a new shell is one more name here."""


def known_shells() -> tuple[str, ...]:
    """Return the names of the shells that tenv can speak to."""
    return tuple(name for shell in SHELLS for name in shell.NAMES)


def find_shell(name: str) -> Shell:
    """Return the module for a shell.

    Raises:
        UsageError: No module speaks to that shell.
    """
    for shell in SHELLS:
        if name in shell.NAMES:
            return shell
    hint = f"tenv speaks to {', '.join(known_shells())}"
    raise UsageError(f"`{name}` is not a shell that tenv knows", hint=hint)
