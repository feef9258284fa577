"""The program ``tenv``: finds the command and loads only that one."""

import functools
import gc
import importlib
import os
import sys
from typing import Any

GROUPS = {
    "Targets and locks": {
        "targets": ("targets", "targets"),
        "show": ("show", "show"),
        "init": ("init", "init"),
        "add": ("edit", "add"),
        "drop": ("edit", "drop"),
        "default": ("settings", "default"),
        "lock": ("lock", "lock"),
        "update": ("update", "update"),
        "diff": ("diff", "diff"),
        "tree": ("packages", "tree"),
        "packages": ("packages", "packages"),
        "outdated": ("published", "outdated"),
        "search": ("published", "search"),
    },
    "Checks": {
        "check": ("check", "check"),
        "check-driver": ("check_driver", "check_driver"),
        "host": ("host", "host"),
        "explain": ("explain", "explain"),
        "facts": ("explain", "facts"),
    },
    "Environments": {
        "create": ("create", "create"),
        "verify": ("verify", "verify"),
        "rollback": ("rollback", "rollback"),
        "list": ("list", "list_environments"),
        "remove": ("remove", "remove"),
        "clean": ("remove", "clean"),
    },
    "Activation": {
        "activate": ("activate", "activate"),
        "deactivate": ("activate", "deactivate"),
        "hook": ("activate", "hook"),
        "completion": ("completion", "completion"),
        "run": ("run", "run_program"),
        "shell": ("run", "shell"),
        "env": ("env", "env"),
        "gdb": ("run", "gdb"),
    },
    "Builds": {
        "plan": ("build", "plan"),
        "build": ("build", "build"),
        "audit": ("audit", "audit"),
        "bisect-env": ("bisect_env", "bisect_env"),
    },
    "Other tools and settings": {
        "export": ("export", "export"),
        "bundle": ("bundle", "bundle"),
        "mirror": ("bundle", "mirror"),
        "import": ("import_file", "import_file"),
        "merge-driver": ("merge_driver", "merge_driver"),
        "config": ("settings", "config"),
        "info": ("settings", "info"),
    },
}
"""Every command under its heading in the help: its module below ``tenv.cli`` and its name there."""

COMMANDS = {name: place for group in GROUPS.values() for name, place in group.items()}
"""Every command: its module below ``tenv.cli`` and its name there."""

EVERY_DAY = {
    "Look": ("targets", "check", "list"),
    "Work in an environment": ("create", "shell", "activate", "run", "build"),
    "Make a target of your own": ("init", "add", "lock", "update"),
}
"""The commands of every day, which the short help has, under its headings."""

_MORE = "`tenv help --all` lists all commands, `tenv help COMMAND` explains one."
"""The last line of the short help."""

_FIRST_OF_TWO = ("env", "config")
"""The commands that begin commands of two words elsewhere, such as conda's ``env list``."""

_EARLY = ("--json", "--quiet", "-q")

_WHOLE_HELP = ({"help", "--all"}, {"--help", "--all"}, {"-h", "--all"})
"""The words that ask for the help with all commands."""

_VERSION = (["--version"], ["-V"], ["version"])

_COLLECT_AFTER = 100_000


def main() -> None:
    """Run the program."""
    # Reference counting frees the objects of a command; cycle collection costs a short command a sixth of its time.
    gc.set_threshold(_COLLECT_AFTER)
    arguments = sys.argv[1:]
    from tenv.cli.surroundings import ended_by_signals, prepare_streams  # late: so that Ctrl-C meanwhile is one, too

    prepare_streams()
    with ended_by_signals():
        _main(arguments)


def _main(arguments: list[str]) -> None:
    import click  # late: as above

    from tenv.cli.command import leave, unusable
    from tenv.cli.output import Voice, tell
    from tenv.core.errors import CancelledError, UsageError

    voice = Voice(json="--json" in arguments)
    try:
        arguments = _in_folder(arguments)
    except UsageError as error:
        leave(voice.fail("", error))
    if voice.json and [word for word in arguments if word not in _EARLY] in _VERSION:
        leave(_version(voice))
    whole = len(arguments) == len(_WHOLE_HELP[0]) and {*arguments} in _WHOLE_HELP
    arguments = ["--help"] if whole else _in_order(arguments)
    name = next((word for word in arguments if not word.startswith("-")), "")
    if not name and sys.argv[0].endswith("__main__.py") and not {"-V", "--version"} & {*arguments}:
        _name_other()
    try:
        with _program(whole=whole).make_context("tenv", arguments) as context:
            context.command.invoke(context)
    except click.exceptions.Exit:  # the help was printed
        pass
    except click.exceptions.NoArgsIsHelpError as error:
        tell(error.format_message())
        leave(UsageError.status)
    except click.ClickException as error:
        if fault := _variable_fault(error):
            leave(voice.fail(name, fault))
        from tenv.cli.usage_errors import form_fault  # late: only for errors

        message, hint = form_fault(error) or _of_another_tool(error, name, arguments) or (_message_of(error), "")
        leave(voice.fail(name, UsageError(message, hint=_hint_for(name, arguments, hint))))
    except OSError as error:  # the help could not be written
        leave(unusable(name, voice, error))
    except (click.Abort, KeyboardInterrupt):
        leave(voice.fail(name, CancelledError("interrupted")))


def _message_of(error: Any) -> str:
    """Return the parser's message, that on an unknown option in tenv's words: each release of click has its own.

    Of the options that the parser suggests, it names the most similar ones.
    """
    from click import NoSuchOption  # late: as in the caller

    from tenv.core.toml_reader import most_similar

    if not isinstance(error, NoSuchOption):
        return str(error.format_message()).rstrip(".")
    given = error.possibilities or ()
    similar = [f"'{name}'" for name in sorted(most_similar(error.option_name, given) or given)]
    meant = f". Did you mean {similar[0]}?" if len(similar) == 1 else ""
    meant = meant or (f". (Did you mean one of: {', '.join(similar)}?)" if similar else "")
    return f"No such option '{error.option_name}'{meant}"


def _of_another_tool(error: Any, name: str, arguments: list[str]) -> tuple[str, str] | None:
    """Return the message and the hint for an option of another tool; None for another fault."""
    from click import NoSuchOption  # late: as in the caller

    from tenv.cli.other_words import way_of_option

    if not name or not isinstance(error, NoSuchOption):
        return None
    way = way_of_option(name, error.option_name, arguments[arguments.index(name) + 1 :])
    return (f"`tenv {name}` has no option `{error.option_name}`", way) if way else None


def _hint_for(name: str, arguments: list[str], form: str) -> str:
    """Return the hint for words that tenv does not take: the way of a word of another tool, the form, or the help."""
    from tenv.cli.other_words import way_of  # late: as in the caller

    way = way_of(name, arguments[arguments.index(name) + 1 :]) if name else ""
    command = f"tenv {name}" if name in COMMANDS else "tenv"
    return way or form or f"`{command} --help` shows what it takes"


def _name_other() -> None:
    """Name another program called tenv, which is the reason for most to type `python -m tenv`."""
    from tenv.cli.output import Voice  # late: as in the caller
    from tenv.core.other_programs import note_on_other

    if note := note_on_other(os.environ):
        Voice().say(note)


def _variable_fault(error: Exception) -> Any:
    """Return the error for a variable such as ``TENV_LOCKED``; None if the words of the command line are at fault.

    The parser reports the option that the variable stands for, which was not typed.
    """
    from tenv.core.errors import UsageError  # late: as in the caller
    from tenv.core.truth_words import is_set

    variable = getattr(getattr(error, "param", None), "envvar", None)
    try:
        if isinstance(variable, str):
            is_set(variable)
    except UsageError as fault:
        return fault
    return None


def _in_folder(arguments: list[str]) -> list[str]:
    """Enter the folder of each `-C DIR` before the command, and return the other words."""
    from tenv.core.errors import UsageError  # late: as in the caller

    at, words = 0, []
    while at < len(arguments) and (arguments[at] in _EARLY or arguments[at] == "-C"):
        if arguments[at] != "-C":
            words.append(arguments[at])
            at += 1
            continue
        folder = arguments[at + 1] if at + 1 < len(arguments) else ""
        if not folder:
            raise UsageError("-C lacks DIR", hint="`tenv -C DIR COMMAND` works in DIR")
        if os.sep in sys.argv[0]:
            sys.argv[0] = os.path.abspath(sys.argv[0])  # noqa: PTH100 (a link must stay a link)
        try:
            os.chdir(folder)
        except OSError as error:
            raise UsageError(f"-C {folder}: {error.strerror}", hint="`tenv -C DIR COMMAND` works in DIR") from error
        os.environ["PWD"] = os.path.abspath(os.path.join(os.environ.get("PWD", ""), folder))  # noqa: PTH100, PTH118
        at += 2
    return [*words, *arguments[at:]]


def _version(voice: Any) -> int:
    """Print the version and the commit as an envelope, and return the exit status."""
    from tenv import __version__  # late: as in the caller
    from tenv.cli.command import run
    from tenv.cli.output import Result
    from tenv.core.source_commit import source_commit

    return run("version", voice, lambda _: Result({"version": __version__, "commit": source_commit() or None}))


def _in_order(arguments: list[str]) -> list[str]:
    """Return the words with the command first: `--json` and `--quiet` may stand before it, `help` leads to `--help`."""
    verb = next((at for at, word in enumerate(arguments) if word not in _EARLY), len(arguments))
    words = [*arguments[verb : verb + 1], *arguments[:verb], *arguments[verb + 1 :]]
    if words[:1] == ["help"]:
        return [*words[1:2], "--help"]
    return words


@functools.cache
def _program(*, whole: bool = False) -> Any:
    """Return the click program; with `whole`, its help has all commands, under the headings of `GROUPS`."""
    import click

    class Commands(click.Group):
        """A group that imports the module of a command only to run it."""

        def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
            return list(COMMANDS)

        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
            if cmd_name not in COMMANDS:
                return None
            module, name = COMMANDS[cmd_name]
            command: click.Command = getattr(importlib.import_module(f"tenv.cli.{module}"), name)
            return command

        def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            groups = GROUPS if whole else EVERY_DAY
            width = max(len(name) for group in groups.values() for name in group)
            for heading, group in groups.items():
                with formatter.section(heading):
                    rows = [(name, self.get_command(ctx, name)) for name in group]
                    formatter.write_dl([(name.ljust(width), row.get_short_help_str(80)) for name, row in rows if row])

        def resolve_command(
            self, ctx: click.Context, args: list[str]
        ) -> tuple[str | None, click.Command | None, list[str]]:
            if args[:1] and args[0] in _FIRST_OF_TWO:
                from tenv.cli.other_words import is_pair

                if is_pair(args):
                    ctx.fail(f"there is no command `{' '.join(args[:2])}`")
            if args and not args[0].startswith("-") and args[0] not in COMMANDS:
                from tenv.cli.other_words import way_of
                from tenv.core.toml_reader import nearest

                suggestion = "" if way_of(args[0], ()) else nearest(args[0], COMMANDS)
                ctx.fail(f"there is no command `{args[0]}`" + (f": {suggestion}" if suggestion else ""))
            return super().resolve_command(ctx, args)

    program = Commands(
        "tenv",
        help="Provide the toolchain that a PyTorch checkout needs, the same on every machine.",
        epilog="\b\n"
        + "\n".join(("Start with `tenv check --here`, then `tenv create auto`.", *([] if whole else [_MORE]))),
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    return _with_options(program)


def _with_options(program: Any) -> Any:
    """Add the options before the command to the help; `_main` reads `-C` and `--all` itself."""
    import click

    from tenv import __version__

    folder = click.Option(["-C", "folder"], metavar="DIR", expose_value=False, help="Work in DIR.")
    every = click.Option(["--all"], is_flag=True, expose_value=False, help="With --help: list all commands.")
    program.params += [folder, every]
    return click.version_option(__version__, "-V", "--version", message="tenv %(version)s")(program)
