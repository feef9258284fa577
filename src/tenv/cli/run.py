"""``tenv run`` and ``tenv shell``."""

from pathlib import Path

import click

from tenv.cli.command import command, target_argument
from tenv.cli.output import Result, Voice
from tenv.cli.start import begin
from tenv.core.errors import UsageError

__all__ = ["run_program", "shell"]

_prefix_option = click.option(
    "--prefix", type=click.Path(path_type=Path), help="The environment's folder, if it is not the default one."
)


@command(
    "run",
    short_help="Run a program in an environment: tenv run TARGET -- COMMAND.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("target")
@_prefix_option
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[--] COMMAND...")
def run_program(voice: Voice, *, target: str, prefix: Path | None, arguments: tuple[str, ...]) -> Result:
    """Run COMMAND in the environment of TARGET, and pass on its exit status and signals.

    With --json, print the command and its variables, and start nothing.
    """
    from tenv.project.context import Context
    from tenv.verbs.run import plan_run

    words = arguments[1:] if arguments[:1] == ("--",) else arguments
    if not words:
        raise UsageError("no command is given", hint=f"`tenv run {target} -- cmake --version` is an example")
    if arguments[0] in ("--prefix", "--json", "--quiet"):
        raise UsageError(
            f"`{arguments[0]}` is an option of tenv, but stands after the target",
            hint=f"`tenv run {arguments[0]} … {target} -- COMMAND` has it before the target",
        )
    context = Context()
    return begin(voice, context, plan_run(context, target, prefix, words, voice.say))


@command("shell", short_help="Start a shell with an active environment.")
@target_argument
@_prefix_option
def shell(voice: Voice, *, target: str | None, prefix: Path | None) -> Result:
    """Start your shell with the environment of TARGET active; `exit` leaves it.

    With --json, print the command and its variables, and start nothing.
    """
    from tenv.project.context import Context
    from tenv.verbs.run import plan_shell

    context = Context()
    return begin(voice, context, plan_shell(context, target, prefix, (lambda _: None) if voice.json else voice.say))
