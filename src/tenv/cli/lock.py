"""``tenv lock``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenv.cli.command import command
from tenv.cli.output import Result, Voice, count
from tenv.cli.progress import Terminal

if TYPE_CHECKING:
    from tenv.workflows.lock import Locked

__all__ = ["lock", "locked_result"]


@command("lock", short_help="Write the lock of a target, or check it.")
@click.argument("target")
@click.option(
    "--check", is_flag=True, help="Write nothing; stop (status 7) when the lock does not satisfy the manifest."
)
@click.option("--lock-file", type=click.Path(path_type=Path, dir_okay=False), help="The file to write or check.")
@click.option("--offline", is_flag=True, help="Never use the network; take everything from the cache.")
def lock(voice: Voice, *, target: str, check: bool, lock_file: Path | None, offline: bool) -> Result:
    """Bring the lock of TARGET up to date for all of its platforms, keeping the versions that still fit."""
    from dataclasses import replace  # noqa: PLC0415

    from tenv.workflows import lock as workflow  # noqa: PLC0415 (late: loads what it needs)
    from tenv.workflows.context import Context  # noqa: PLC0415

    with Terminal(voice) as progress:
        context = Context(progress=progress, offline=offline)
        found = context.places.find(target)
        if lock_file:
            found = replace(found, lock_file=lock_file, lock_home=lock_file)
        locked = workflow.check_target_lock(found) if check else workflow.lock_target(context, found)
    verb = "satisfies its manifest" if check else "written" if locked.changed else "is up to date"
    return locked_result(target, locked, verb)


def locked_result(target: str, locked: "Locked", verb: str) -> Result:
    """Return what `tenv lock` and `tenv update` tell of a lock."""
    from tenv.workflows.lock import counts  # noqa: PLC0415

    platforms = counts(locked.lock)
    data = {"target": target, "path": str(locked.path), "changed": locked.changed, "platforms": platforms}
    told = ", ".join(f"{platform} {count(row['wheels'], 'wheel')}" for platform, row in platforms.items())
    findings = [finding.to_json() for finding in locked.findings]
    return Result(data, summary=[f"{locked.path} {verb}: {told}"], findings=findings)
