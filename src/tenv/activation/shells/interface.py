"""The interface of shell modules, and their list."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tenv.activation.changes import Action, Activation
from tenv.activation.shells import cmd, elvish, fish, nushell, posix, powershell, xonsh
from tenv.core.errors import UsageError

__all__ = ["OTHER_NAMES", "SHELLS", "Shell", "find_shell", "known_shells", "refused"]


class Shell(Protocol):
    """A family of shells that share their syntax."""

    @property
    def NAMES(self) -> tuple[str, ...]:  # noqa: N802 (a constant of the module)
        """The names of its shells."""

    @property
    def SCRIPT(self) -> str:  # noqa: N802 (a constant of the module)
        """The name of the stored script."""

    def render_activation(self, activation: Activation) -> str:
        """Return the script that activates an environment. It can be undone exactly and never exits the shell."""

    def quote(self, text: str) -> str:
        """Return a text as one word of this shell."""

    def holds(self, value: str) -> bool:
        """Return whether this shell can hold a value."""

    def use(self, command: str) -> str:
        """Return the line that a user types, or adds to the start file, to run the output of a tenv command."""

    def render_source(self, script: str) -> str:
        """Return the command that runs a script of this shell in the running shell."""

    def render_deactivation(self) -> str:
        """Return the script that undoes the innermost activation."""

    def render_hook(self, program: Sequence[str], home: Path) -> str:
        """Return the definition of a function ``tenv`` that activates without starting Python.

        Args:
            program: The words that start tenv, for all other commands.
            home: The folder of environments outside a project.
        """

    def start(self, program: str, script: str, environment: Mapping[str, str], folder: Path) -> list[str] | None:
        """Return the words that start a shell after running a script; None if the shell does not support it.

        Files for the shell are written into the empty `folder`, which the shell removes after its start.
        """


SHELLS: tuple[Shell, ...] = (posix, fish, elvish, xonsh, nushell, powershell, cmd)
"""Every module; a new shell is one more name here."""


OTHER_NAMES = {"nu": "nushell", "pwsh": "powershell", "ash": "sh"}
"""Names of programs that go by another name in the list above."""


def known_shells() -> tuple[str, ...]:
    """Return the names of the supported shells."""
    return tuple(name for shell in SHELLS for name in shell.NAMES)


def find_shell(name: str, target: str = "TARGET") -> Shell:
    """Return the module for a shell.

    Args:
        name: The shell's name.
        target: The target to activate, for the message.

    Raises:
        UsageError: tenv does not support the shell.
    """
    for shell in SHELLS:
        if OTHER_NAMES.get(name, name) in shell.NAMES:
            return shell
    hint = (
        f"`tenv shell {target}` and `tenv run {target} -- COMMAND` need none; "
        f"tenv speaks to {', '.join(known_shells())}"
    )
    raise UsageError(f"`{name}` is not a shell that tenv supports", hint=hint)


def refused(shell: Shell, activation: Activation) -> tuple[str, ...]:
    """Return the variables of an activation whose values a shell can't hold."""
    valued = (change for change in activation.changes if change.action is not Action.UNSET)
    return tuple(change.name for change in valued if not shell.holds(change.value))
