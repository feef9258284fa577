"""``tenv activate``, ``tenv deactivate`` and ``tenv hook``."""

import os
import sys
from pathlib import Path

import click

from tenv.activation.shells.interface import Shell, StoredShell, find_shell, known_shells, running_shell
from tenv.cli.command import command, locked_option, prefix_option, target_argument
from tenv.cli.output import Result, Voice, is_terminal
from tenv.cli.run import program_words
from tenv.core.errors import UsageError
from tenv.core.other_programs import note_on_other

_shell_option = click.option(
    "--shell", "shell_name", metavar="SHELL", help="The shell to write for; default: the one that runs tenv."
)

_SHELLS = f"Shells: {', '.join(known_shells())}."


def _shell_of(name: str | None, target: str | None) -> Shell:
    """Return the shell of that name; without a name, the shell that started tenv."""
    return find_shell(name or running_shell(os.environ), target or "TARGET")


def failing_script(arguments: list[str]) -> str:
    """Return the output of an `activate` that failed: `eval` of it fails too, so that `set -e` stops a script.

    Only POSIX shells and fish evaluate the output of a failed command.

    Args:
        arguments: The words of the command line.
    """
    words = " ".join(arguments).replace("--shell=", "--shell ").split()
    try:
        shell = _shell_of(words[words.index("--shell") + 1] if "--shell" in words[:-1] else None, None)
    except UsageError:
        return ""
    return "false\n" if isinstance(shell, StoredShell) else ""


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
    from tenv.verbs.activate import find_script, render_activated

    shell = _shell_of(shell_name, target)
    context = Context(locked=locked)
    shown = is_terminal(sys.stdout) and not voice.json
    if isinstance(shell, StoredShell):
        name, script = find_script(context, target, prefix, shell.SCRIPT, voice.say)
        result = Result({"target": name, "script": str(script)}, text=shell.render_source(str(script)))
    else:
        name, text = render_activated(context, target, prefix, shell, voice.say)
        line = shell.use(f"tenv activate {name}") + "\n"
        result = Result({"target": name, "script": text}, text=line if shown else text)
    if shown:
        voice.say(f"this only prints the command; run: {shell.use(f'tenv activate {name}')}")
        voice.say(f"or once, in your shell's start file: {shell.use(f'tenv hook {shell.NAMES[0]}')}")
    return result


@command("deactivate", short_help='Print the deactivation script: eval "$(tenv deactivate)".', epilog=_SHELLS)
@_shell_option
def deactivate(voice: Voice, *, shell_name: str | None) -> Result:
    """Print the script that undoes the innermost activation of your shell. On a terminal, print the command to run."""
    from tenv.verbs.activate import render_deactivated

    shell = _shell_of(shell_name, None)
    if is_terminal(sys.stdout) and not voice.json:
        voice.say("this only prints the command; with the hook in your shell's start file, `tenv deactivate` runs it:")
        voice.say(shell.use(f"tenv hook {shell.NAMES[0]}"))
        text = shell.use("tenv deactivate") + "\n"
    elif isinstance(shell, StoredShell):
        text = shell.render_deactivation()
    else:
        text = render_deactivated(os.environ, shell, voice.say)
    return Result({"script": text}, text=text)


@command("hook", short_help='Print the shell function for your start file: eval "$(tenv hook bash)".', epilog=_SHELLS)
@click.argument("shell_name", metavar="SHELL")
def hook(voice: Voice, *, shell_name: str) -> Result:
    """Print a shell function `tenv` that runs the scripts of `tenv activate` and `tenv deactivate`.

    In POSIX shells and fish the function sources stored scripts, so activating an environment does not start Python.
    """
    from tenv.project.context import Context

    context, shell = Context(), find_shell(shell_name)
    if note := note_on_other(context.environ):
        voice.say(note)
    if isinstance(shell, StoredShell):
        text = shell.render_hook(program_words(), context.places.data / "envs")
    else:
        text = shell.render_hook(program_words())
    return Result({"script": text}, text=text)
