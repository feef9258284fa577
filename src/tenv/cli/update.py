"""``tenv update``."""

import click

from tenv.cli.command import command, offline_option
from tenv.cli.diff import outline
from tenv.cli.lock import locked_result, user_option
from tenv.cli.output import Result, Voice
from tenv.cli.progress_bar import Terminal

__all__ = ["update"]


@command("update", short_help="Update the lock of a target to newer versions.")
@click.argument("target")
@click.argument("packages", nargs=-1, metavar="[PACKAGE]...")
@click.option("--dry-run", is_flag=True, help="Print the changes, and write nothing.")
@user_option
@offline_option
def update(voice: Voice, *, target: str, packages: tuple[str, ...], dry_run: bool, user: bool, offline: bool) -> Result:
    """Lock the newest versions that the manifest of TARGET allows, of the PACKAGEs or of all packages.

    Another package changes only if a PACKAGE requires it.
    """
    from dataclasses import replace

    from tenv.project.context import Context  # late: loads what it needs
    from tenv.verbs.diff import difference_of
    from tenv.verbs.lock import lock_target
    from tenv.verbs.lock_place import require_user, with_user

    with Terminal(voice) as progress:
        context = with_user(Context(progress=progress, offline=offline), user=user)
        found = context.places.find(target)
        if not dry_run:
            require_user(found, "tenv update", user=user)
        locked = lock_target(context, found, upgrade=packages or None, dry_run=dry_run)
    difference = difference_of(context, locked.before, locked.lock) if locked.before else None
    verb = "is up to date" if not locked.changed else "would be written" if dry_run else "written"
    result = locked_result(target, locked, verb)
    if difference and found.lock_origin is not found.home_origin and found.lock_origin:
        voice.say(f"compared with {found.lock_file}, the lock in use before ({found.lock_origin.owner}):")
    changes = {"dry_run": dry_run, "difference": difference.to_json() if difference is not None else None}
    lines = outline(difference) if difference else []
    return replace(result, data={**result.data, **changes}, summary=[*lines, *result.summary])
