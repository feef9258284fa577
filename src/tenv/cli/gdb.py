"""``tenv gdb``."""

from pathlib import Path

import click

from tenv.cli.command import SplitCommand, command, locked_option, prefix_option
from tenv.cli.output import Result, Voice
from tenv.cli.start import begin
from tenv.core.errors import UsageError

__all__ = ["gdb"]


@command(
    "gdb",
    short_help="Debug a program in an environment with gdb: tenv gdb TARGET -- COMMAND.",
    cls=SplitCommand,
)
@click.argument("target", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("--attach", metavar="PID|NAME", help="Attach to a process, by its id or a part of its command line.")
@click.option("--cuda", is_flag=True, help="Use cuda-gdb, which also stops in kernels.")
@click.option("--gdb-arg", "extra", multiple=True, metavar="ARG", help="An argument of gdb itself, such as -tui.")
@prefix_option
@locked_option
def gdb(
    voice: Voice,
    *,
    target: str | None,
    arguments: tuple[str, ...],
    attach: str | None,
    cuda: bool,
    extra: tuple[str, ...],
    prefix: Path | None,
    locked: bool,
) -> Result:
    """Start COMMAND under gdb in the environment of TARGET; the status is gdb's.

    `py-bt` shows the Python frames. `os.kill(os.getpid(), signal.SIGTRAP)` in a script is a breakpoint. Without
    COMMAND, it is the environment's Python. With --json, print the command and its variables, and start nothing.
    """
    from tenv.project.context import Context
    from tenv.verbs.gdb import GdbRequest, plan_gdb

    if attach and arguments:
        raise UsageError("`--attach` and a COMMAND exclude each other", hint="remove the words after `--`")
    context = Context(locked=locked)
    plan = plan_gdb(context, GdbRequest(target, prefix, arguments, attach, cuda, extra), voice.say)
    return begin(voice, context, plan)
