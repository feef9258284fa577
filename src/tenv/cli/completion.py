"""``tenv completion``."""

import importlib
from typing import TYPE_CHECKING

import click

from tenv.cli.command import command
from tenv.cli.output import Result, Voice
from tenv.core.errors import UsageError

if TYPE_CHECKING:
    from tenv.activation.shells.tab_words import Grammar, Option, Subcommand, WordKind
    from tenv.project.context import Context


@command("completion", short_help="Print the completion script for your shell.")
@click.argument("shell_name", metavar="SHELL")
def completion(voice: Voice, *, shell_name: str) -> Result:  # noqa: ARG001 (every command has a voice)
    """Print a script that completes commands, options, targets, platforms, codes and packages in SHELL.

    The script is complete in itself: Tab does not start tenv. Shells: bash, zsh, fish, elvish, nushell, xonsh,
    powershell (not run by the tests).
    """
    from tenv.activation.shells.tab_words import COMPLETIONS
    from tenv.project.context import Context

    if shell_name not in COMPLETIONS:
        hint = f"shells with completion: {', '.join(COMPLETIONS)}"
        raise UsageError(f"tenv has no completion for `{shell_name}`", hint=hint)
    text = COMPLETIONS[shell_name](_grammar(Context()))
    return Result({"script": text}, text=text)


def _grammar(context: "Context") -> "Grammar":
    """Return the grammar of the command line, as the commands declare it."""
    from tenv.activation.shells.tab_words import Grammar
    from tenv.cli.main import COMMANDS

    made = [getattr(importlib.import_module(f"tenv.cli.{module}"), name) for module, name in COMMANDS.values()]
    folders = [place.folder for place in context.places.places if place.folder != context.places.project]
    return Grammar(tuple(map(_subcommand, made)), tuple(map(str, folders)))


def _subcommand(made: click.Command) -> "Subcommand":
    from tenv.activation.shells.tab_words import Subcommand

    arguments = [part for part in made.params if isinstance(part, click.Argument)]
    return Subcommand(
        made.name or "",
        (made.short_help or "").splitlines()[0],
        tuple(_option(part) for part in made.params if isinstance(part, click.Option)),
        tuple(_words(part) or _expected(part) for part in arguments),
        repeats=any(part.nargs < 0 for part in arguments),
    )


def _option(part: click.Option) -> "Option":
    from tenv.activation.shells.tab_words import Option

    value = None if part.is_flag else _expected(part)
    return Option((*part.opts, *part.secondary_opts), value, () if part.is_flag else _words(part), part.help or "")


_KINDS = {
    **dict.fromkeys(("target", "old", "new"), "target"),
    **dict.fromkeys(("lock_file", "host_report", "file", "files", "against"), "file"),
    **dict.fromkeys(("prefix", "output", "pytorch"), "folder"),
    "packages": "package",
    "arguments": "program",
}
"""The kind of word that a parameter takes, by the name of the parameter."""


def _expected(part: click.Parameter) -> "WordKind":
    from tenv.activation.shells.tab_words import WordKind

    if part.name in _KINDS:
        return WordKind(_KINDS[part.name])
    return WordKind.FILE if isinstance(part.type, click.Path) else WordKind.NOTHING


def _words(part: click.Parameter) -> tuple[str, ...]:
    """Return the values of a parameter that is a choice; else nothing."""
    from tenv.activation.shells.interface import known_shells
    from tenv.facts.table_files import LAYOUTS
    from tenv.interop.formats import FORMATS, ONLY_READ, ONLY_WRITTEN
    from tenv.targets.manifest import PLATFORMS
    from tenv.verbs.explain import codes

    if isinstance(part.type, click.Choice):
        return tuple(map(str, part.type.choices))
    known = {
        "platforms": PLATFORMS,
        "format": tuple(name for name in FORMATS if name not in ONLY_READ),
        "format_": tuple(name for name in FORMATS if name not in ONLY_WRITTEN),
        "shell_name": known_shells(),
        "code": codes(),
        "table": tuple(LAYOUTS),
    }
    return tuple(known.get(part.name or "", ()))
