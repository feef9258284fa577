"""``tenv env``."""

from pathlib import Path

import click

from tenv.cli.command import command, target_argument
from tenv.cli.output import Result, Voice
from tenv.core.errors import UsageError

__all__ = ["env"]


@command("env", short_help="Print what activating an environment sets, and why.")
@target_argument
@click.option("--explain", metavar="NAME", help="Tell who sets one variable, why, and what it replaces now.")
@click.option(
    "--prefix", type=click.Path(path_type=Path), help="The environment's folder, when it is not the usual one."
)
def env(voice: Voice, *, target: str | None, explain: str | None, prefix: Path | None) -> Result:  # noqa: ARG001
    """Print every variable that activating the environment of TARGET changes, with the reason."""
    from tenv.core.toml_reader import nearest  # noqa: PLC0415
    from tenv.project.context import Context  # noqa: PLC0415
    from tenv.verbs.activate import find_activation  # noqa: PLC0415

    context = Context()
    activation = find_activation(context, target, prefix)
    changes = activation.changes
    if explain:
        changes = (*changes, *activation.left_out)
        names = [change.name for change in changes]
        if explain not in names:
            hint = nearest(explain, names) or f"`tenv env {activation.target}` lists them"
            raise UsageError(f"{activation.target} does not change `{explain}`", hint=hint)
        changes = tuple(change for change in changes if change.name == explain)
    rows = [
        {**change.to_json(), "replaces": context.environ.get(change.name)}
        | ({"action": "left out"} if change in activation.left_out else {})
        for change in changes
    ]
    return Result(rows, text=lambda: _print(rows, explained=bool(explain)))


def _print(rows: list[dict[str, str | None]], *, explained: bool) -> None:
    for row in rows:
        sign = {"set": "=", "prepend": "=", "unset": "", "left out": ""}[str(row["action"])]
        rest = f":${row['name']}" if row["action"] == "prepend" else ""
        value = {"unset": "(unset)", "left out": "(left as it is)"}.get(str(row["action"]), f"{row['value']}{rest}")
        click.echo(f"{row['name']}{sign or ' '}{value}")
        click.echo(f"    {row['reason']}")
        if explained:
            replaces = row["replaces"]
            click.echo(f"    in this shell it is {'not set' if replaces is None else f'`{replaces}`'}")
