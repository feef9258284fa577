"""``tenv init``."""

import click

from tenv.cli.command import command
from tenv.cli.output import Result, Voice

__all__ = ["init"]


@command("init", short_help="Begin a target of your own: a manifest with comments.")
@click.argument("name", required=False)
@click.option("--extends", metavar="TARGET", help="The target that it is laid over, such as cuda130.")
def init(voice: Voice, *, name: str | None, extends: str | None) -> Result:  # noqa: ARG001 (every command has a voice)
    """Write manifests/NAME.toml into the project, or into this folder, which becomes one.

    Without NAME, the target has the name of the folder. `.gitignore` gets a line for the environments.
    """
    from tenv.project.context import Context
    from tenv.verbs.init import init as begin

    begun = begin(Context(), name, extends)
    data = {
        "target": begun.target,
        "manifest": str(begun.manifest),
        "gitignore": str(begun.ignore) if begun.ignore else None,
    }
    lines = [f"{begun.manifest} written"]
    lines += [f"{begun.ignore} now has the line `.tenv/`"] if begun.ignore else []
    lines.append(f"next: `tenv add {begun.target} PACKAGE`, `tenv lock {begun.target}`, `tenv create {begun.target}`")
    if begun.repository:
        lines.append("`tenv merge-driver --install` lets git merge locks by solving again")
    return Result(data, summary=lines)
