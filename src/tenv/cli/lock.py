"""``tenv lock``."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenv.cli.command import FilePath, command, offline_option, target_argument
from tenv.cli.output import Result, Voice, count
from tenv.cli.progress_bar import Terminal
from tenv.core.errors import LockMissingError, LockStaleError, TenvError

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable

    from tenv.project.context import Context
    from tenv.targets.search import Target
    from tenv.verbs.lock import Locked
    from tenv.verbs.lock_place import LockHome

user_option = click.option(
    "--user", is_flag=True, help="Write to your configuration folder, which counts outside projects."
)

project_option = click.option(
    "--project", is_flag=True, help="Write to the project; a PyTorch checkout that lies in none becomes one."
)

_LIMIT_HELP = "Time limit in seconds for reading package lists, and then for solving (300)."


@command("lock", short_help="Write or check the lock of a target.")
@target_argument
@click.option(
    "--check", is_flag=True, help="Write nothing; end with status 7 if the lock does not satisfy the manifest."
)
@user_option
@project_option
@click.option("--reset", is_flag=True, help="Remove the lock that replaces the one beside the manifest.")
@click.option("--lock-file", type=FilePath(dir_okay=False), help="The file to write or check.")
@offline_option
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
    target: str | None,
    check: bool,
    user: bool,
    project: bool,
    reset: bool,
    lock_file: Path | None,
    offline: bool,
    exclude_newer: "dt.datetime | None",
    time_limit: float,
    trust_first_use: bool,
    verbose: bool,
) -> Result:
    """Bring the lock of TARGET up to date for all of its platforms, keeping the versions that still fit.

    Without TARGET, all targets of the project are locked, or checked, one after the other.
    """
    from tenv.project.context import Context
    from tenv.sources.interface import SolveOptions
    from tenv.verbs import lock as workflow  # late: heavy
    from tenv.verbs import lock_place

    if target is None and (lock_file or reset):
        raise click.UsageError("--lock-file and --reset need a TARGET")
    home = home_of(user=user, project=project)
    check = check or bool(lock_place.keeping_variable())
    limits = SolveOptions(time_limit, exclude_newer, trust_first_use=trust_first_use)

    def one(context: "Context", name: str) -> Result:
        if reset:
            return _reset(context, name)
        found = context.places.find(name)
        if lock_file:
            found = _of_file(found, lock_file, check=check)
        elif not check:
            lock_place.require_place(context, found, "tenv lock", home, lambda: _answers(found))
        try:
            locked = _checked(found) if check else workflow.lock_target(context, found, limits=limits)
        except TenvError as error:
            if verbose and error.detail:
                voice.say(error.detail)
            raise
        if locked.changed and not check:
            lock_place.keep_project(context)
        verb = "satisfies its manifest" if check else "written" if locked.changed else "is up to date"
        return locked_result(name, locked, verb)

    with Terminal(voice) as progress:
        return each(lock_place.place_of(Context(progress=progress, offline=offline), home), target, one)


def _of_file(target: "Target", file: Path, *, check: bool) -> "Target":
    """Return a target with the lock that `--lock-file` names, which is written unless it is checked."""
    from dataclasses import replace

    from tenv.core.output_file import require_output
    from tenv.locks.lock_file import is_lock

    if not check:
        require_output(file, "--lock-file", "a lock of tenv", is_lock)
    return replace(target, lock_file=file, lock_home=file, lock_origin=None)


def _checked(target: "Target") -> "Locked":
    """Return the lock of a target, which must satisfy the manifest; the hint of an error is a command that works."""
    from tenv.verbs.lock import check_target_lock
    from tenv.verbs.lock_place import keeping_variable

    try:
        return check_target_lock(target)
    except (LockMissingError, LockStaleError) as error:
        if variable := keeping_variable():
            error.hint = f"`{variable}=0 tenv lock {shlex.quote(target.name)}` writes it"
        raise


def home_of(*, user: bool, project: bool) -> "LockHome":
    """Return the place that the options name; raises UsageError for two."""
    from tenv.verbs.lock_place import LockHome

    if user and project:
        raise click.UsageError("--user and --project exclude each other")
    return LockHome.USER if user else LockHome.PROJECT if project else LockHome.NEAREST


def each(context: "Context", target: str | None, one: "Callable[[Context, str], Result]") -> Result:
    """Return the action of a command on a target, or without a name on each target of the project.

    Every target is taken, also after one that fails; the command then ends with the first of the errors.
    """
    names = context.chosen_targets(target)
    if len(names) == 1:
        return one(context, names[0])
    results: list[Result] = []
    errors: list[TenvError] = []
    for name in names:
        try:
            results.append(one(context, name))
        except TenvError as error:
            errors.append(error)
    if errors:
        for result in results:
            for line in result.summary:
                context.progress.say(line)
        for other in errors[1:]:
            context.progress.say(f"error[{other.code}]: {other.message}")
        raise errors[0]
    rows = [result.data for result in results]
    changed = any(row["changed"] for row in rows)
    return Result(
        {"targets": rows, "changed": changed},
        summary=[line for result in results for line in result.summary],
        findings=[finding for result in results for finding in result.findings],
    )


def _answers(target: "Target") -> bool:
    """Return whether the lock in use satisfies its manifest, so tenv writes none."""
    from tenv.checks.lock_verdict import judge_lock

    judged = judge_lock(target)
    return judged.lock is not None and not judged.faults


def _reset(context: "Context", target: str) -> Result:
    from tenv.verbs.lock_place import reset_lock

    done = reset_lock(context, target)
    now = done.target
    data = {"target": target, "removed": str(done.removed), "path": str(now.lock_file), "changed": True}
    counts = f"{now.lock_file} is in use now ({now.owners})" if now.lock_origin else "the target has no lock now"
    return Result(data, summary=[f"{done.removed} removed: {counts}"])


def locked_result(target: str, locked: "Locked", verb: str) -> Result:
    """Return the result of `tenv lock` and `tenv update`."""
    from tenv.verbs.lock import counts

    platforms = counts(locked.lock)
    data = {"target": target, "path": str(locked.path), "changed": locked.changed, "platforms": platforms}
    tally = ", ".join(f"{platform} {_count(row)}" for platform, row in platforms.items())
    return Result(data, summary=[f"{locked.path} {verb}: {tally}"], findings=locked.findings)


def _count(row: "dict[str, int]") -> str:
    """Return the number of files of a platform by kind. Zero is shown for wheels alone."""
    from tenv.targets.sections import SECTIONS

    parts = [count(row[section.key], section.noun) for section in SECTIONS if row.get(section.key)]
    return " and ".join(parts) or "no files"
