"""``tenv init``."""

import click

from tenv.cli.command import command
from tenv.cli.output import Result, Voice

__all__ = ["init"]


@command("init", short_help="Write the manifest of a new target.")
@click.argument("name", required=False)
@click.option("--extends", metavar="TARGET", help="The parent target, such as cuda130.")
def init(voice: Voice, *, name: str | None, extends: str | None) -> Result:  # noqa: ARG001 (every command has a voice)
    """Write manifests/NAME.toml in the project, or in the working folder, which becomes a project.

    tenv.schema.json beside it is the JSON schema of manifests, for editors. Without NAME, the target has the name of
    the folder. `.gitignore` gets a line for the environments.
    """
    from tenv.project.context import Context
    from tenv.verbs.init import init as begin

    begun = begin(Context(), name, extends)
    data = {
        "target": begun.target,
        "manifest": str(begun.manifest),
        "schema": str(begun.schema),
        "gitignore": str(begun.ignore) if begun.ignore else None,
        "hides": begun.hidden or None,
    }
    lines = [f"{begun.manifest} written, and {begun.schema.name}, with which editors complete and check it"]
    if begun.hidden:
        lines.append(
            f"note: there is another target `{begun.target}` ({begun.hidden}), which this one hides in the project; "
            f"`tenv init NAME --extends {begun.target}` adds to that one under a name of its own"
        )
    lines += [f"{begun.ignore} now has the line `.tenv/`"] if begun.ignore else []
    lines.append(f"next: `tenv add {begun.target} PACKAGE`, `tenv lock {begun.target}`, `tenv create {begun.target}`")
    if begun.repository:
        lines.append("`tenv merge-driver --install` configures git to merge locks with tenv")
    return Result(data, summary=lines)
