"""``tenv update``."""

import click

from tenv.cli.command import command
from tenv.cli.diff import outline
from tenv.cli.lock import locked_result
from tenv.cli.output import Result, Voice
from tenv.cli.progress_bar import Terminal

__all__ = ["update"]


@command("update", short_help="Update the lock of a target to newer versions.")
@click.argument("target")
@click.argument("packages", nargs=-1, metavar="[PACKAGE]...")
@click.option("--dry-run", is_flag=True, help="Print the changes, and write nothing.")
@click.option("--offline", is_flag=True, help="Never use the network; take everything from the cache.")
def update(voice: Voice, *, target: str, packages: tuple[str, ...], dry_run: bool, offline: bool) -> Result:
    """Lock the newest versions that the manifest of TARGET allows, of the PACKAGEs or of all packages.

    Another package changes only if a PACKAGE requires it.
    """
    from dataclasses import replace

    from tenv.project.context import Context  # late: loads what it needs
    from tenv.verbs.diff import difference_of
    from tenv.verbs.lock import lock_target

    with Terminal(voice) as progress:
        context = Context(progress=progress, offline=offline)
        locked = lock_target(context, context.places.find(target), upgrade=packages or None, dry_run=dry_run)
    difference = difference_of(context, locked.before, locked.lock) if locked.before else None
    verb = "is up to date" if not locked.changed else "would be written" if dry_run else "written"
    result = locked_result(target, locked, verb)
    changes = {"dry_run": dry_run, "difference": difference.to_json() if difference is not None else None}
    lines = outline(difference) if difference else []
    return replace(result, data={**result.data, **changes}, summary=[*lines, *result.summary])
