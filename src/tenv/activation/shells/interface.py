"""The interface of shell modules, their list, and the shell that started tenv."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from tenv.activation.changes import Activation
from tenv.activation.shells import cmd, elvish, fish, nushell, posix, powershell, xonsh
from tenv.core.errors import UsageError


class _Common(Protocol):
    """The functions of every shell module: a family of shells that share their syntax."""

    @property
    def NAMES(self) -> tuple[str, ...]:  # noqa: N802 (a constant of the module)
        """The names of its shells."""

    def quote(self, text: str) -> str:
        """Return a text as one word of this shell."""

    def use(self, command: str) -> str:
        """Return the line that a user types, or adds to the start file, to run the output of a tenv command."""


@runtime_checkable
class EditShell(_Common, Protocol):
    """A shell that sets and unsets variables; Python computes them at each activation and deactivation."""

    def holds(self, value: str) -> bool:
        """Return whether this shell can hold a value."""

    def render_edits(self, edits: Mapping[str, str | None]) -> str:
        """Return the script that sets variables, and unsets those with None.

        Its first line is a comment with ``tenv: NAME``, by which the hook knows it from help and errors.
        """

    def render_hook(self, program: Sequence[str]) -> str:
        """Return the definition of a function ``tenv`` that runs the output of `activate` and `deactivate`.

        Args:
            program: The words that start tenv.
        """

    def start(self, program: str, activate: Sequence[str]) -> list[str] | None:
        """Return the words that start a shell and then activate; None if the shell does not support it.

        Args:
            program: The program of the shell.
            activate: The words that print the edits of the activation.
        """


@runtime_checkable
class StoredShell(_Common, Protocol):
    """A shell that activates by a stored script, and computes the changes by itself, as Python does for others."""

    @property
    def SCRIPT(self) -> str:  # noqa: N802 (a constant of the module)
        """The name of the stored script."""

    def render_activation(self, activation: Activation) -> str:
        """Return the script that activates an environment. It can be undone exactly and never exits the shell."""

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


Shell = StoredShell | EditShell

STORED: tuple[StoredShell, ...] = (posix, fish)
"""The modules with a stored script in each environment."""

SHELLS: tuple[Shell, ...] = (*STORED, elvish, xonsh, nushell, powershell, cmd)
"""Every module; a new shell is one more name here."""

_OTHER_NAMES = {"nu": "nushell", "pwsh": "powershell", "ash": "sh"}
"""Names of programs that go by another name in the list above."""

_UNSUPPORTED = frozenset({"csh", "tcsh", "rc", "es", "yash", "osh", "ysh", "ion", "murex", "oksh", "scsh", "tclsh"})
"""A script for another shell would be a syntax error in them."""

_STEPS = 12
"""The maximum number of ancestors to check: there may be a launcher, a wrapper or a timing program."""


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
        if _OTHER_NAMES.get(name, name) in shell.NAMES:
            return shell
    hint = (
        f"`tenv shell {target}` and `tenv run {target} -- COMMAND` need no shell script; "
        f"tenv supports {', '.join(known_shells())}"
    )
    raise UsageError(f"`{name}` is not a shell that tenv supports", hint=hint)


def running_shell(environ: Mapping[str, str]) -> str:
    """Return the name of the shell that started tenv, supported or not: the nearest ancestor process that is one.

    ``SHELL`` has only the login shell.
    """
    names = {*known_shells(), *_OTHER_NAMES, *_UNSUPPORTED}
    for process in _ancestors():
        if process in names:
            return process
    if os.name == "nt":  # only cmd sets PROMPT
        return "cmd" if "PROMPT" in environ else "powershell"
    return Path(environ.get("SHELL", "")).name or "sh"


def _ancestors() -> Iterator[str]:
    """Yield the names of the ancestor processes, nearest first; nothing without /proc."""
    process = os.getppid()
    for _ in range(_STEPS):
        folder = Path("/proc", str(process))
        try:
            before, _, after = (folder / "stat").read_text(errors="replace").rpartition(")")
            words = (folder / "cmdline").read_text(errors="replace").split("\0")
        except OSError:
            return
        # A Python program that sets its title (xonsh with setproctitle) has its whole command line there.
        name = before.partition("(")[2].partition(" ")[0]
        # A shell that is a Python program has the name of its script only if that was started by itself.
        yield "xonsh" if name.startswith("python") and "xonsh" in (Path(word).name for word in words[1:3]) else name
        process = int(after.split()[1])
        if process <= 1:
            return
