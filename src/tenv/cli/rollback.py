"""``tenv rollback``."""

from pathlib import Path

import click

from tenv.cli.command import command, offline_option, prefix_option, target_argument
from tenv.cli.diff import outline
from tenv.cli.output import Result, Voice, format_seconds
from tenv.cli.progress_bar import Terminal


@command("rollback", short_help="Restore the previous lock of an environment.")
@target_argument
@prefix_option
@click.option("--dry-run", is_flag=True, help="Print the changes, and change nothing.")
@offline_option
@click.option("--no-wait", is_flag=True, help="End with status 8 if another process uses the environment.")
def rollback(
    voice: Voice, *, target: str | None, prefix: Path | None, dry_run: bool, offline: bool, no_wait: bool
) -> Result:
    """Install the lock that the environment of TARGET had before the present one.

    Each call goes one lock further back; tenv keeps the last three. The lock of the project does not change, so the
    next `tenv create TARGET` installs it again.
    """
    from tenv.project.context import Context  # late: heavy
    from tenv.verbs.rollback import find_way, go_back

    with Terminal(voice) as progress:
        context = Context(progress=progress, offline=offline)
        way = find_way(context, target, prefix)
        changes = outline(way.difference) if way.difference is not None else []
        verb = "would go" if dry_run else "goes"
        for line in (f"{way.target} {verb} back to {way.lock}{':' if changes else ''}", *changes):
            progress.say(line)
        made = None if dry_run else go_back(context, way, prefix, wait=not no_wait)
    data = {
        "target": way.target,
        "prefix": str(way.environment.prefix),
        "dry_run": dry_run,
        "state": made.state.status.value if made else None,
        "lock_digest": made.state.lock if made else None,
        "difference": way.difference.to_json() if way.difference is not None else None,
    }
    if made is None:
        return Result(data)
    again = f"`tenv create {way.target}` installs the present lock again"
    return Result(
        data,
        summary=[
            *(f"note: {note}" for note in made.notes),
            f"{way.target} has its previous lock ({format_seconds(made.seconds)}); {again}",
        ],
    )
