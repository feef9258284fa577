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
@click.option("--cuda", is_flag=True, help="Take cuda-gdb, which stops in kernels too.")
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

    `py-bt` shows the Python frames. A script stops where it says `os.kill(os.getpid(), signal.SIGTRAP)`. Without
    COMMAND, the environment's Python is started. With --json, print what would be started, and start nothing.
    """
    from tenv.project.context import Context
    from tenv.verbs.gdb import GdbRequest, plan_gdb

    if attach and arguments:
        raise UsageError("`--attach` takes a process that runs, and no command", hint="leave out what follows `--`")
    context = Context(locked=locked)
    plan = plan_gdb(context, GdbRequest(target, prefix, arguments, attach, cuda, extra), voice.say)
    return begin(voice, context, plan)
