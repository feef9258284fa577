"""``tenv lock``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenv.cli.command import command, offline_option
from tenv.cli.output import Result, Voice, count
from tenv.cli.progress_bar import Terminal
from tenv.core.errors import TenvError

if TYPE_CHECKING:
    import datetime as dt

    from tenv.project.context import Context
    from tenv.targets.search import Target
    from tenv.verbs.lock import Locked

__all__ = ["lock", "locked_result", "user_option"]

user_option = click.option(
    "--user", is_flag=True, help="Write to your configuration folder, which counts wherever no project has its own."
)

_LIMIT_HELP = "Seconds that reading the package lists of channels, and then solving, may take (300)."


@command("lock", short_help="Write the lock of a target, or check it.")
@click.argument("target")
@click.option(
    "--check", is_flag=True, help="Write nothing; stop (status 7) when the lock does not satisfy the manifest."
)
@user_option
@click.option("--reset", is_flag=True, help="Remove the lock that takes the place of the one beside the manifest.")
@click.option("--lock-file", type=click.Path(path_type=Path, dir_okay=False), help="The file to write or check.")
@offline_option
@click.option(
    "--exclude-newer",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    help="Choose anew, without files that came after this moment (UTC; a day means its first).",
)
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), default=300.0, help=_LIMIT_HELP)
@click.option("--trust-first-use", is_flag=True, help="Take files whose sha256 nobody names as they are seen now.")
@click.option("--verbose", "-v", is_flag=True, help="Where there is no solution, print all that the solver says.")
def lock(
    voice: Voice,
    *,
    target: str,
    check: bool,
    user: bool,
    reset: bool,
    lock_file: Path | None,
    offline: bool,
    exclude_newer: "dt.datetime | None",
    time_limit: float,
    trust_first_use: bool,
    verbose: bool,
) -> Result:
    """Bring the lock of TARGET up to date for all of its platforms, keeping the versions that still fit."""
    from dataclasses import replace

    from tenv.project.context import Context
    from tenv.sources.interface import SolveOptions
    from tenv.verbs import lock as workflow  # late: loads what it needs
    from tenv.verbs.lock_place import replaces_built_in, require_user, with_user

    with Terminal(voice) as progress:
        context = with_user(Context(progress=progress, offline=offline), user=user)
        if reset:
            return _reset(context, target)
        found = context.places.find(target)
        if lock_file:
            found = replace(found, lock_file=lock_file, lock_home=lock_file, lock_origin=None)
        elif not check and replaces_built_in(found) and not _answers(found):
            require_user(found, "tenv lock", user=user)
        limits = SolveOptions(time_limit, exclude_newer, trust_first_use=trust_first_use)
        try:
            locked = workflow.check_target_lock(found) if check else workflow.lock_target(context, found, limits=limits)
        except TenvError as error:
            if verbose and error.detail:
                voice.say(error.detail)
            raise
    verb = "satisfies its manifest" if check else "written" if locked.changed else "is up to date"
    return locked_result(target, locked, verb)


def _answers(target: "Target") -> bool:
    """Return whether the lock that counts satisfies its manifest, so that none is written."""
    from tenv.checks.lock_verdict import judge_lock

    judged = judge_lock(target)
    return judged.lock is not None and not judged.faults


def _reset(context: "Context", target: str) -> Result:
    from tenv.verbs.lock_place import reset_lock

    done = reset_lock(context, target)
    now = done.target
    data = {"target": target, "removed": str(done.removed), "path": str(now.lock_file), "changed": True}
    counts = f"{now.lock_file} counts ({now.owners})" if now.lock_origin else "there is no lock now"
    return Result(data, summary=[f"{done.removed} removed: {counts}"])


def locked_result(target: str, locked: "Locked", verb: str) -> Result:
    """Return what `tenv lock` and `tenv update` tell of a lock."""
    from tenv.verbs.lock import counts

    platforms = counts(locked.lock)
    data = {"target": target, "path": str(locked.path), "changed": locked.changed, "platforms": platforms}
    told = ", ".join(f"{platform} {_told(row)}" for platform, row in platforms.items())
    findings = [finding.to_json() for finding in locked.findings]
    return Result(data, summary=[f"{locked.path} {verb}: {told}"], findings=findings)


def _told(row: "dict[str, int]") -> str:
    """Return how many files a platform has, by kind; wheels alone are counted even when there are none."""
    from tenv.targets.sections import SECTIONS

    parts = [count(row[section.key], section.noun) for section in SECTIONS if row.get(section.key)]
    return " and ".join(parts) or "no files"
