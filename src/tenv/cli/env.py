"""``tenv env``."""

import os
from pathlib import Path
from typing import Any

import click

from tenv.activation.changes import Action, is_own
from tenv.cli.command import command, prefix_option, target_argument
from tenv.cli.output import Result, Voice, out, prose
from tenv.core.errors import UsageError
from tenv.core.toml_reader import nearest


@command("env", short_help="Print the variables that activation sets, and why.")
@target_argument
@click.option("--explain", metavar="NAME", help="Explain one variable: its origin, its reason, the value it replaces.")
@prefix_option
def env(voice: Voice, *, target: str | None, explain: str | None, prefix: Path | None) -> Result:
    """Print every variable that activation of the environment of TARGET changes, with the reason."""
    from tenv.project.context import Context
    from tenv.verbs.activate import find_activation

    context = Context()
    activation = find_activation(context, target, prefix, voice.say)
    changes = activation.changes
    if explain:
        changes = (*changes, *activation.left_out)
        names = [change.name for change in changes]
        if explain not in names:
            hint = nearest(explain, names) or f"`tenv env {activation.target}` lists them"
            raise UsageError(f"{activation.target} sets no variable `{explain}`", hint=hint)
        changes = tuple(change for change in changes if change.name == explain)
    rows = [
        {**change.to_json(), "replaces": context.environ.get(change.name)}
        | ({"action": "left out"} if change in activation.left_out else {})
        | ({"stays": True} if change.default and is_own(context.environ, change.name) else {})
        for change in changes
    ]
    return Result(rows, text=lambda: _print(rows, explained=bool(explain)))


def _print(rows: list[dict[str, Any]], *, explained: bool) -> None:
    for row in rows:
        out(f"{row['name']}{_shown(row)}")
        prose(f"    {row['reason']}")
        if explained:
            replaces = row["replaces"]
            stays = ", which stays" if row.get("stays") else ""
            out(f"    in this shell it is {'not set' if replaces is None else f'`{replaces}`'}{stays}")


def _shown(row: dict[str, Any]) -> str:
    """Return the new value of a variable as text."""
    value, own = row["value"], f"${row['name']}"
    separator = row.get("separator") or os.pathsep
    match row["action"]:
        case Action.PREPEND:
            return f"={value}{separator}{own}"
        case Action.APPEND:
            return f"={own}{separator}{value}"
        case Action.UNSET:
            return " (unset)"
        case Action.SET:
            return f"={value}"
        case _:
            return " (unchanged)"
