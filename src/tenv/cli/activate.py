"""``tenv activate``, ``tenv deactivate`` and ``tenv hook``."""

import os
import sys
from pathlib import Path

import click

from tenv.activation.shells.interface import Shell, find_shell, known_shells, refused
from tenv.cli.command import command, locked_option, prefix_option, target_argument
from tenv.cli.output import Result, Voice, is_terminal
from tenv.cli.start import program_words
from tenv.core.errors import UsageError
from tenv.core.other_programs import note_on_other

__all__ = ["activate", "deactivate", "hook"]

_shell_option = click.option(
    "--shell", "shell_name", metavar="SHELL", help="The shell to write for; default: the one that runs tenv."
)

_SHELLS = f"Shells: {', '.join(known_shells())}."


def _shell_of(name: str | None, target: str | None) -> Shell:
    """Return the shell of that name; without a name, the shell that started tenv."""
    from tenv.activation.shells.running import running_shell

    return find_shell(name or running_shell(os.environ), target or "TARGET")


@command("activate", short_help='Print the activation script: eval "$(tenv activate TARGET)".', epilog=_SHELLS)
@target_argument
@prefix_option
@locked_option
@_shell_option
def activate(voice: Voice, *, target: str | None, prefix: Path | None, locked: bool, shell_name: str | None) -> Result:
    """Print the command that activates the environment of TARGET in your shell.

    Without TARGET, it is the default target.
    """
    from tenv.project.context import Context
    from tenv.verbs.activate import find_activation, find_script

    shell = _shell_of(shell_name, target)
    context = Context(locked=locked)
    name, script = find_script(context, target, prefix, shell.SCRIPT, voice.say)
    if names := refused(shell, find_activation(context, target, prefix)):
        raise UsageError(
            f"{shell.NAMES[0]} can't hold the value of {', '.join(names)}; no variable was set",
            hint=f"`tenv run {name} -- COMMAND` runs a command without a shell script",
        )
    if is_terminal(sys.stdout) and not voice.json:
        voice.say(f"this only prints the command; run: {shell.use(f'tenv activate {name}')}")
        voice.say(f"or once, in your shell's start file: {shell.use(f'tenv hook {shell.NAMES[0]}')}")
    return Result({"target": name, "script": str(script)}, text=shell.render_source(str(script)))


@command("deactivate", short_help='Print the deactivation script: eval "$(tenv deactivate)".', epilog=_SHELLS)
@_shell_option
def deactivate(voice: Voice, *, shell_name: str | None) -> Result:
    """Print the script that undoes the innermost activation of your shell. On a terminal, print the command to run."""
    shell = _shell_of(shell_name, None)
    text = shell.render_deactivation()
    if not is_terminal(sys.stdout) or voice.json:
        return Result({"script": text}, text=text)
    voice.say("this only prints the command; with the hook in your shell's start file, `tenv deactivate` runs it:")
    voice.say(shell.use(f"tenv hook {shell.NAMES[0]}"))
    return Result({"script": text}, text=shell.use("tenv deactivate") + "\n")


@command("hook", short_help='Print the shell function for your start file: eval "$(tenv hook bash)".', epilog=_SHELLS)
@click.argument("shell_name", metavar="SHELL")
def hook(voice: Voice, *, shell_name: str) -> Result:
    """Print a shell function `tenv` that runs the scripts of `tenv activate` and `tenv deactivate`.

    The function sources stored scripts, so activating an environment does not start Python.
    """
    from tenv.project.context import Context

    context = Context()
    if note := note_on_other(context.environ):
        voice.say(note)
    text = find_shell(shell_name).render_hook(program_words(), context.places.data / "envs")
    return Result({"script": text}, text=text)
