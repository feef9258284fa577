"""The errors of a command that lacks a word, or has one too many: the form that it takes."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from tenv.cli.examples import EXAMPLES

_EXTRA = "Got unexpected extra argument"
_ELSEWHERE = {
    "--with": "`tenv create TARGET --with FEATURES` installs features, and every command of the environment has them",
    "-C": "`tenv -C DIR {}` works in DIR",
}
"""Options of another command, or of tenv itself, by the way to write them."""


def form_fault(error: click.ClickException) -> tuple[str, str] | None:
    """Return the message and the hint for a missing word or one too many; None for other faults.

    Args:
        error: The error of the parser.
    """
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None or context.info_name is None:
        return None
    if isinstance(error, click.NoSuchOption) and error.option_name in _ELSEWHERE:
        hint = _ELSEWHERE[error.option_name].format(context.info_name)
        return f"`{context.command_path}` has no option `{error.option_name}`", hint
    if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Argument):
        here = _files() if context.info_name == "import" else ""
        return f"`{context.command_path}` lacks {error.param.human_readable_name}", here or _form(context)
    if not error.message.startswith(_EXTRA):
        return None
    # The parser keeps the words nowhere but in its message.
    words = error.message.partition("(")[2].rpartition(")")[0].split(" ")
    given = [one for one in context.command.params if isinstance(one, click.Argument) and context.params.get(one.name)]
    further = "further " if given else ""
    message = f"`{context.command_path}` does not take the {further}word{'s'[: len(words) > 1]} `{' '.join(words)}`"
    return message, _way(context, words) or _form(context)


def _way(context: click.Context, words: Sequence[str]) -> str:
    """Return the command for words after a target; empty where their meaning is unknown."""
    from tenv.cli.other_words import default_word, target_names  # late: reads the folders of manifests

    target = context.params.get("target")
    if context.info_name == "list" and len(words) == 1:
        name = words[0]
        line = shlex.quote(name) if name in target_names() else f"{default_word()} {shlex.quote(name)}"
        return f"`tenv packages {line}` lists packages; `tenv list` lists the environments"
    if not isinstance(target, str):
        shown = context.info_name == "targets" and len(words) == 1 and words[0] in target_names()
        return f"`tenv show {shlex.quote(words[0])}` prints a target" if shown else ""
    command = context.command_path
    if context.info_name == "tree" and len(words) == 1:
        line = f"{command} {shlex.quote(target)} --invert {shlex.quote(words[0])}"
        return f"`{line}` prints what requires {words[0]}"
    names = target_names()
    if context.info_name == "create" and target in names and names.isdisjoint(words):
        return f"`tenv add {shlex.quote(target)} {shlex.join(words)}` asks for it in the target"
    if names.issuperset((target, *words)):
        lines = [f"`{command} {one}`" for one in (target, *words)]
        return f"it takes one target: {', then '.join(lines)}"
    return ""


def _files() -> str:
    """Return the commands that import the files of the working folder; empty if it has none of a known format."""
    from tenv.interop.formats import importable  # late: reads the folder

    try:
        lines = [f"`tenv import {shlex.quote(name)}`" for name in importable(Path.cwd())]
    except OSError:
        return ""
    if len(lines) > 1:
        return f"{', '.join(lines[:-1])} and {lines[-1]} read the files that are here"
    return f"{lines[0]} reads the file that is here" if lines else ""


def _form(context: click.Context) -> str:
    """Return the words that a command takes, with an example."""
    pieces = [piece for piece in context.command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    form = " ".join([context.command_path, *pieces])
    example = next(iter(EXAMPLES.get(context.info_name or "", ())), "")
    such = f", such as `{example}`" if example and example != form else ""
    return f"the form is `{form}`{such}; `{context.command_path} --help` shows its options"
