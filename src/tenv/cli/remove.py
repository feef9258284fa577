"""``tenv remove``."""

import shlex
from pathlib import Path

import click

from tenv.cli.command import command, prefix_option
from tenv.cli.output import Result, Voice, format_bytes
from tenv.core.errors import UnknownTargetError

__all__ = ["remove"]


@command("remove", short_help="Remove an environment.")
@click.argument("target")
@prefix_option
@click.option("--no-wait", is_flag=True, help="End with status 8 if another process uses the environment.")
@click.option("--dry-run", is_flag=True, help="Report what would be removed and which built torch breaks, no more.")
def remove(voice: Voice, *, target: str, prefix: Path | None, no_wait: bool, dry_run: bool) -> Result:
    """Remove the environment of TARGET with all its files. tenv refuses a folder that it did not create.

    It names each torch that `tenv build` made with the environment and that can't be imported without it.
    """
    from tenv.project.context import Context
    from tenv.verbs.remove import remove_environment

    context = Context()
    try:
        removed = remove_environment(context, target, prefix, wait=not no_wait, say=voice.say, dry_run=dry_run)
    except UnknownTargetError as error:
        raise UnknownTargetError(
            f"{error.message}: `tenv remove` removes environments",
            hint=f"`tenv drop {context.default_word()} {shlex.quote(target)}` takes a package out of a target; "
            f"{error.hint}",
        ) from error
    data = {
        "target": target,
        "prefix": str(removed.prefix),
        "bytes": removed.bytes,
        "removed": removed.removed,
        "breaks": [{**torch.to_json(), "environment": str(place)} for torch, place in removed.breaks],
    }
    done = "removed" if removed.removed else "would remove"
    return Result(data, summary=[f"{done} {removed.prefix} ({format_bytes(removed.bytes)})"])
