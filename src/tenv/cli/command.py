"""The parts that all commands share: common options, errors, exit statuses."""

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from tenv.cli.examples import EXAMPLES
from tenv.cli.output import Result, Voice
from tenv.core.errors import BugError, CancelledError, Exit, StorageError, TenvError

JSON_HELP = "Print one JSON envelope to standard output."


def not_empty(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """Refuse an option whose value is empty: most likely an unset variable of the shell."""
    values = value if isinstance(value, tuple) else (value,)
    if "" in values and context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
        raise click.BadParameter("the value is empty", param=option)
    return value


class FilePath(click.Path):
    """A file or folder; an empty word is refused as in `not_empty`, since it would mean the working folder."""

    def __init__(self, *, dir_okay: bool = True, file_okay: bool = True) -> None:
        super().__init__(dir_okay=dir_okay, file_okay=file_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        return self.fail("the value is empty", param, ctx) if value == "" else super().convert(value, param, ctx)


def named_features(text: str | None) -> tuple[str, ...] | None:
    """Return the features of `--with`; None where it is not given: an environment keeps those that it has."""
    if text is None:
        return None
    names = tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))
    if not names or ("none" in names and len(names) > 1):
        raise click.UsageError("--with: expected features, such as debug,test, or none")
    return () if names == ("none",) else names


target_argument = click.argument("target", required=False, callback=not_empty)
"""An optional target; default: the default target."""

prefix_option = click.option(
    "--prefix", type=FilePath(), help="The environment's folder, if it is not the default one."
)


def of_part(function: Callable[..., Result]) -> Callable[..., Result]:
    """Add the options for another platform and for one feature of a target."""
    platform = click.option("--platform", default="", callback=not_empty, help="Those of the lock for this platform.")
    feature = click.option("--feature", default="", callback=not_empty, help="Only those that this feature brings.")
    return platform(feature(function))


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
    help="End with status 7 if the environment is stale (TENV_LOCKED).",
)


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
    """Return a decorator that makes a click command of a function from `Voice` to `Result`.

    Args:
        name: The command.
        cls: The class of the click command.
        settings: The settings of click.
    """

    def decorate(function: Callable[..., Result]) -> click.Command:
        @functools.wraps(function)
        def call(*, json: bool, quiet: bool, **options: Any) -> NoReturn:
            leave(run(name, Voice(json=json, quiet=quiet), functools.partial(function, **options)))

        examples = "\n".join(f"  {line}" for line in EXAMPLES.get(name, ()))
        epilog = "\n\n".join(
            filter(None, (settings.pop("epilog", ""), f"\b\nExamples:\n{examples}" if examples else ""))
        )
        made: click.Command = click.command(name, cls=cls, epilog=epilog, **settings)(call)
        made.params += [
            click.Option(["--json"], is_flag=True, help=JSON_HELP),
            click.Option(["--quiet", "-q"], is_flag=True, help="Print no messages except errors."),
        ]
        return made

    return decorate


def run(name: str, voice: Voice, function: Callable[[Voice], Result]) -> Exit:
    """Run the function of a command and return its exit status, whatever ends it."""
    try:
        return _finish(name, voice, function(voice))
    except TenvError as error:
        return voice.fail(name, error)
    except KeyboardInterrupt:
        from tenv.core import process  # late: short commands start no program

        process.end_all()  # no command waits for them after this
        return voice.fail(name, CancelledError("interrupted", hint="run the same command again to continue"))
    except OSError as error:
        return unusable(name, voice, error)
    except click.ClickException:
        raise
    except Exception as error:  # noqa: BLE001 (a bug is reported as an error, not as a traceback)
        return _bug(name, voice, error)


def _finish(name: str, voice: Voice, result: Result) -> Exit:
    try:
        status = voice.finish(name, result)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe; the status stays
        _hush()
        return result.status
    return status


def _bug(name: str, voice: Voice, error: Exception) -> Exit:
    if os.environ.get("TENV_TRACEBACK"):
        import traceback  # late: only bugs need it

        traceback.print_exc()
    hint = "this is a bug of tenv; run the command again with `TENV_TRACEBACK=1` and report the traceback"
    return voice.fail(name, BugError(f"{type(error).__name__}: {error}", hint=hint))


def unusable(name: str, voice: Voice, error: OSError) -> Exit:
    """Return the status of a command whose system call failed on a file or on standard output.

    A reader that closes the pipe has all that it wants: that is no error.
    """
    if error.filename is None:  # standard output; a fault of a file leaves it in order
        _hush()
    if isinstance(error, BrokenPipeError):
        return Exit.DONE
    return voice.fail(name, StorageError(f"{error.filename or 'standard output'}: {error.strerror or error}"))


def _hush() -> None:
    """Discard the rest of standard output, so that the exit of the process raises no error."""
    sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 (kept open until the end)


def leave(status: int) -> NoReturn:
    """End the command with an exit status; `tenv.__main__` ends the process."""
    sys.exit(status)
