"""The program ``tenv``: finds the command and loads only that one."""

import contextlib
import gc
import importlib
import sys
from typing import Any

__all__ = ["main"]

COMMANDS = {
    "targets": ("targets", "targets"),
    "show": ("show", "show"),
    "lock": ("lock", "lock"),
    "update": ("update", "update"),
    "diff": ("diff", "diff"),
    "merge-driver": ("merge_driver", "merge_driver"),
    "plan": ("build", "plan"),
    "build": ("build", "build"),
    "export": ("export", "export"),
    "import": ("import_file", "import_file"),
    "create": ("create", "create"),
    "verify": ("verify", "verify"),
    "rollback": ("rollback", "rollback"),
    "list": ("list", "list_environments"),
    "activate": ("activate", "activate"),
    "deactivate": ("activate", "deactivate"),
    "hook": ("activate", "hook"),
    "completion": ("completion", "completion"),
    "run": ("run", "run_program"),
    "shell": ("run", "shell"),
    "gdb": ("gdb", "gdb"),
    "env": ("env", "env"),
    "check": ("check", "check"),
    "check-driver": ("check_driver", "check_driver"),
    "explain": ("explain", "explain"),
    "host": ("host", "host"),
    "facts": ("facts", "facts"),
    "remove": ("remove", "remove"),
    "clean": ("clean", "clean"),
}
"""Every command: its module below ``tenv.cli`` and its name there."""


_COLLECT_AFTER = 100_000


def main() -> None:
    """Run the program."""
    # Reference counting frees the objects of a command; cycle collection costs a short command a sixth of its time.
    gc.set_threshold(_COLLECT_AFTER)
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):  # scripts use it to detect tenv, so it loads no library
        from tenv import __version__

        with contextlib.suppress(OSError):  # the usual path below then reports the error
            print(f"tenv {__version__}", flush=True)
            return
    from tenv.cli.surroundings import ended_by_signals, endure_texts  # late: as above

    endure_texts()
    with ended_by_signals():
        _main(arguments)


def _main(arguments: list[str]) -> None:
    import click  # late: `tenv --version` needs none of it

    from tenv.cli.command import hush, leave, unusable
    from tenv.cli.output import Voice, tell
    from tenv.core.errors import CancelledError, UsageError

    voice = Voice(json="--json" in arguments)
    name = next((word for word in arguments if not word.startswith("-")), "")
    try:
        _program().main(arguments, prog_name="tenv", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        tell(error.format_message())
        leave(UsageError.status)
    except click.ClickException as error:
        command = f"tenv {name}" if name in COMMANDS else "tenv"
        hint = f"`{command} --help` shows the options"
        leave(voice.fail(name, UsageError(error.format_message().rstrip("."), hint=hint)))
    except OSError as error:  # the help could not be written
        hush()
        leave(voice.fail(name, unusable(error)))
    except (click.Abort, KeyboardInterrupt):
        leave(voice.fail(name, CancelledError("interrupted")))


def _program() -> Any:
    import click

    from tenv import __version__

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

        def resolve_command(
            self, ctx: click.Context, args: list[str]
        ) -> tuple[str | None, click.Command | None, list[str]]:
            from tenv.core.toml_reader import nearest

            if args and not args[0].startswith("-") and args[0] not in COMMANDS:
                suggestion = nearest(args[0], COMMANDS)
                ctx.fail(f"there is no command `{args[0]}`" + (f": {suggestion}" if suggestion else ""))
            return super().resolve_command(ctx, args)

    program = Commands(
        "tenv",
        help="Provide the toolchain that a PyTorch checkout needs, the same on every machine.",
        epilog="Start with `tenv targets`, then `tenv create TARGET`.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    return click.version_option(__version__, "-V", "--version", message="tenv %(version)s")(program)
