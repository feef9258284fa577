"""What all commands share: their common options, their errors, and how they end."""

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from tenv.cli.output import Result, Voice
from tenv.core.errors import BugError, CancelledError, Exit, StorageError, TenvError

__all__ = [
    "JSON_HELP",
    "SplitCommand",
    "command",
    "hush",
    "leave",
    "locked_option",
    "not_empty",
    "offline_option",
    "prefix_option",
    "target_argument",
    "unusable",
]

JSON_HELP = "Print one JSON envelope to standard output."

target_argument = click.argument("target", required=False)
"""A target that may be left out for the default one."""

prefix_option = click.option(
    "--prefix", type=click.Path(path_type=Path), help="The environment's folder, when it is not the usual one."
)

offline_option = click.option(
    "--offline",
    is_flag=True,
    envvar="TENV_OFFLINE",
    help="Never use the network; take everything from the cache (TENV_OFFLINE).",
)

locked_option = click.option(
    "--locked",
    is_flag=True,
    envvar="TENV_LOCKED",
    help="Stop (status 7) when the environment is stale (TENV_LOCKED).",
)


def not_empty(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """Refuse an option that is given as an empty text: a variable that was never set would pass unseen."""
    if value == "" and context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
        raise click.BadParameter("nothing is named", param=option)
    return value


class SplitCommand(click.Command):
    """A command whose last argument takes all that follows `--`, and nothing before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options and the target before `--` and leave the words after it as they are."""
        split = args.index("--") if "--" in args else len(args)
        ours, theirs = args[:split], tuple(args[split + 1 :])
        rest: list[str] = click.Command.parse_args(self, ctx, ours)
        if ctx.params.get("arguments"):
            ctx.fail(f"`{ctx.params['arguments'][0]}` stands before `--`, after which the command begins")
        ctx.params["arguments"] = theirs
        return rest


def command(
    name: str, cls: type[click.Command] = click.Command, **settings: Any
) -> Callable[[Callable[..., Result]], click.Command]:
    """Make a click command of a function that takes a `Voice` and returns a `Result`."""

    def decorate(function: Callable[..., Result]) -> click.Command:
        @functools.wraps(function)
        def call(*, json: bool, quiet: bool, **options: Any) -> NoReturn:
            leave(run(name, Voice(json=json, quiet=quiet), functools.partial(function, **options)))

        made: click.Command = click.command(name, cls=cls, **settings)(call)
        made.params += [
            click.Option(["--json"], is_flag=True, help=JSON_HELP),
            click.Option(["--quiet", "-q"], is_flag=True, help="Say nothing but errors."),
        ]
        return made

    return decorate


def run(name: str, voice: Voice, function: Callable[[Voice], Result]) -> Exit:
    """Run a command's function and turn every way in which it can end into an exit status."""
    try:
        return _finish(name, voice, function(voice))
    except TenvError as error:
        return voice.fail(name, error)
    except KeyboardInterrupt:
        from tenv.core import process  # late: short commands start no program

        process.end_all()  # nobody waits for them any more
        return voice.fail(name, CancelledError("interrupted", hint="the same command goes on where this one stopped"))
    except BrokenPipeError:  # of a command that speaks while it works
        hush()
        return Exit.DONE
    except OSError as error:
        hush()
        return voice.fail(name, unusable(error))
    except click.ClickException:
        raise
    except Exception as error:  # noqa: BLE001 (a bug of ours is told as one, not as a stack of frames)
        return _bug(name, voice, error)


def _finish(name: str, voice: Voice, result: Result) -> Exit:
    try:
        status = voice.finish(name, result)
        if sys.stdout is not None:  # closed by the caller
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has seen enough; the answer is what it was
        hush()
        return result.status
    return status


def _bug(name: str, voice: Voice, error: Exception) -> Exit:
    if os.environ.get("TENV_TRACEBACK"):
        import traceback  # late: for bugs alone

        traceback.print_exc()
    hint = "this is a bug of tenv; run it again with TENV_TRACEBACK=1 and report what it prints"
    return voice.fail(name, BugError(f"{type(error).__name__}: {error}", hint=hint))


def unusable(error: OSError) -> StorageError:
    """Return the error for a file, or our own output, with which the system would not do what was asked."""
    return StorageError(f"{error.filename or 'standard output'}: {error.strerror or error}")


def hush() -> None:
    """Send what is still to be written to standard output nowhere, so that the end of the process is quiet."""
    sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 (kept open until the end)


def leave(status: int) -> NoReturn:
    """End the command with a status; the process ends in `tenv.__main__`."""
    sys.exit(status)
