"""``tenv lock``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenv.cli.command import command
from tenv.cli.output import Result, Voice, count
from tenv.cli.progress_bar import Terminal
from tenv.core.errors import TenvError

if TYPE_CHECKING:
    import datetime as dt

    from tenv.verbs.lock import Locked

__all__ = ["lock", "locked_result"]

_LIMIT_HELP = "Time limit in seconds for reading package lists, and then for solving (300)."


@command("lock", short_help="Write or check the lock of a target.")
@click.argument("target")
@click.option(
    "--check", is_flag=True, help="Write nothing; end with status 7 if the lock does not satisfy the manifest."
)
@click.option("--lock-file", type=click.Path(path_type=Path, dir_okay=False), help="The file to write or check.")
@click.option("--offline", is_flag=True, help="Never use the network; take everything from the cache.")
@click.option(
    "--exclude-newer",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    help="Select all files anew, without files newer than this time (UTC; a date means 00:00).",
)
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), default=300.0, help=_LIMIT_HELP)
@click.option("--trust-first-use", is_flag=True, help="Record the sha256 of downloads that have no published one.")
@click.option("--verbose", "-v", is_flag=True, help="If there is no solution, print the solver's full output.")
def lock(
    voice: Voice,
    *,
    target: str,
    check: bool,
    lock_file: Path | None,
    offline: bool,
    exclude_newer: "dt.datetime | None",
    time_limit: float,
    trust_first_use: bool,
    verbose: bool,
) -> Result:
    """Update the lock of TARGET for all of its platforms, and keep the versions that still satisfy the manifest."""
    from dataclasses import replace

    from tenv.project.context import Context
    from tenv.sources.interface import SolveOptions
    from tenv.verbs import lock as workflow  # late: loads what it needs

    with Terminal(voice) as progress:
        context = Context(progress=progress, offline=offline)
        found = context.places.find(target)
        if lock_file:
            found = replace(found, lock_file=lock_file, lock_home=lock_file)
        limits = SolveOptions(time_limit, exclude_newer, trust_first_use=trust_first_use)
        try:
            locked = workflow.check_target_lock(found) if check else workflow.lock_target(context, found, limits=limits)
        except TenvError as error:
            if verbose and error.detail:
                voice.say(error.detail)
            raise
    verb = "satisfies its manifest" if check else "written" if locked.changed else "is up to date"
    return locked_result(target, locked, verb)


def locked_result(target: str, locked: "Locked", verb: str) -> Result:
    """Return the result of `tenv lock` and `tenv update`."""
    from tenv.verbs.lock import counts

    platforms = counts(locked.lock)
    data = {"target": target, "path": str(locked.path), "changed": locked.changed, "platforms": platforms}
    tally = ", ".join(f"{platform} {_count(row)}" for platform, row in platforms.items())
    findings = [finding.to_json() for finding in locked.findings]
    return Result(data, summary=[f"{locked.path} {verb}: {tally}"], findings=findings)


def _count(row: "dict[str, int]") -> str:
    """Return the number of files of a platform by kind. Zero is shown for wheels alone."""
    from tenv.targets.sections import SECTIONS

    parts = [count(row[section.key], section.noun) for section in SECTIONS if row.get(section.key)]
    return " and ".join(parts) or "no files"
