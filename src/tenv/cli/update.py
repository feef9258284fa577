"""``tenv update``."""

import click

from tenv.cli.command import command
from tenv.cli.lock import locked_result
from tenv.cli.output import Result, Voice
from tenv.cli.progress import Terminal

__all__ = ["update"]


@command("update", short_help="Choose newer versions for the lock of a target.")
@click.argument("target")
@click.argument("packages", nargs=-1, metavar="[PACKAGE]...")
def update(voice: Voice, *, target: str, packages: tuple[str, ...]) -> Result:
    """Choose the newest versions that the manifest of TARGET allows, for PACKAGEs alone or for all, and lock them."""
    from tenv.workflows.context import Context  # noqa: PLC0415 (late: loads what it needs)
    from tenv.workflows.lock import lock_target  # noqa: PLC0415

    with Terminal(voice) as progress:
        context = Context(progress=progress)
        locked = lock_target(context, context.places.find(target), upgrade=packages or None)
    return locked_result(target, locked, "written" if locked.changed else "is up to date")
