"""``tenv activate``, ``tenv deactivate`` and ``tenv hook``."""

import os
import sys
from pathlib import Path

import click

from tenv.cli.command import command, target_argument
from tenv.cli.output import Result, Voice, is_terminal

__all__ = ["activate", "deactivate", "hook"]

_shell_option = click.option(
    "--shell", "shell_name", metavar="SHELL", help="The shell to speak to; your own when left out."
)


def _own_shell() -> str:
    """Return the name of the user's shell, as far as its environment tells."""
    from tenv.activation.shells.interface import known_shells  # noqa: PLC0415

    name = Path(os.environ.get("SHELL", "")).name
    return name if name in known_shells() else "sh"


@command("activate", short_help='Print what activates an environment: eval "$(tenv activate TARGET)".')
@target_argument
@click.option(
    "--prefix", type=click.Path(path_type=Path), help="The environment's folder, when it is not the usual one."
)
@_shell_option
def activate(voice: Voice, *, target: str | None, prefix: Path | None, shell_name: str | None) -> Result:
    """Print the command that activates the environment of TARGET in your shell.

    Without TARGET, the only environment here is taken.
    """
    from tenv.activation.shells.interface import find_shell  # noqa: PLC0415
    from tenv.project.context import Context  # noqa: PLC0415
    from tenv.verbs.activate import find_script  # noqa: PLC0415

    shell = find_shell(shell_name or _own_shell())
    name, script = find_script(Context(), target, prefix, shell.SCRIPT, voice.say)
    if is_terminal(sys.stdout) and not voice.json:
        voice.say(f'this only prints the command; run: eval "$(tenv activate {name})"')
        voice.say('or once, in your shell\'s start file: eval "$(tenv hook bash)"  (or zsh)')
    return Result({"target": name, "script": str(script)}, text=shell.render_source(str(script)))


@command("deactivate", short_help='Print what undoes the innermost activation: eval "$(tenv deactivate)".')
@_shell_option
def deactivate(voice: Voice, *, shell_name: str | None) -> Result:  # noqa: ARG001 (every command has a voice)
    """Print the script that undoes the innermost activation of your shell."""
    from tenv.activation.shells.interface import find_shell  # noqa: PLC0415

    text = find_shell(shell_name or _own_shell()).render_deactivation()
    return Result({"script": text}, text=text)


@command("hook", short_help='Print the shell function for your start file: eval "$(tenv hook bash)".')
@click.argument("shell_name", metavar="SHELL")
def hook(voice: Voice, *, shell_name: str) -> Result:  # noqa: ARG001 (every command has a voice)
    """Print a shell function `tenv` with which `tenv activate` and `tenv deactivate` work by themselves.

    It sources stored scripts: no Python is started to activate an environment.
    """
    from tenv.activation.shells.interface import find_shell  # noqa: PLC0415
    from tenv.project.context import Context  # noqa: PLC0415

    program = os.path.abspath(sys.argv[0])  # noqa: PTH100 (a link must stay a link)
    words = [sys.executable, "-m", "tenv"] if program.endswith("__main__.py") else [program]
    text = find_shell(shell_name).render_hook(words, Context().places)
    return Result({"script": text}, text=text)
