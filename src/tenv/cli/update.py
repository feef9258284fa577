"""``tenv update``."""

import shlex
from dataclasses import replace

import click

from tenv.cli.command import command, offline_option, target_argument
from tenv.cli.diff import outline
from tenv.cli.lock import each, home_of, locked_result, project_option, user_option
from tenv.cli.output import Result, Voice
from tenv.cli.progress_bar import Terminal
from tenv.core.errors import UnknownTargetError


@command("update", short_help="Update the lock of a target to newer versions.")
@target_argument
@click.argument("packages", nargs=-1, metavar="[PACKAGE]...")
@click.option("--dry-run", is_flag=True, help="Print the changes, and write nothing.")
@user_option
@project_option
@offline_option
def update(
    voice: Voice,
    *,
    target: str | None,
    packages: tuple[str, ...],
    dry_run: bool,
    user: bool,
    project: bool,
    offline: bool,
) -> Result:
    """Lock the newest versions that the manifest of TARGET allows, of the PACKAGEs or of all packages.

    Another package changes only if a PACKAGE requires it. Without TARGET, all targets of the project are updated.
    """
    from tenv.project.context import Context  # late: heavy
    from tenv.verbs.diff import difference_of
    from tenv.verbs.lock import lock_target
    from tenv.verbs.lock_place import keep_project, keeping_variable, place_of, require_kept, require_place

    home = home_of(user=user, project=project)

    def one(context: Context, name: str) -> Result:
        try:
            found = context.places.find(name)
        except UnknownTargetError as error:
            if packages:
                raise
            hint = f"`tenv update {context.default_word()} {name}` updates one package of a target; {error.hint}"
            raise UnknownTargetError(error.message, hint=hint) from error
        kept = bool(keeping_variable())
        if not (dry_run or kept):
            require_place(context, found, "tenv update", home)
        locked = lock_target(context, found, upgrade=packages or None, dry_run=dry_run or kept)
        if locked.changed and kept and not dry_run:
            command = shlex.join(["tenv", "update", name, *packages])
            require_kept(locked.path, command, f"`{command} --dry-run` prints the changes")
        if locked.changed and not dry_run:
            keep_project(context)
        difference = difference_of(context, locked.before, locked.lock) if locked.before else None
        verb = "is up to date" if not locked.changed else "would be written" if dry_run else "written"
        told = locked_result(name, locked, verb)
        changes = {"dry_run": dry_run, "difference": difference.to_json() if difference is not None else None}
        lines = outline(difference) if difference else []
        if difference and found.lock_origin is not found.home_origin and found.lock_origin:
            lines = [f"compared with {found.lock_file}, the lock in use before ({found.lock_origin.owner}):", *lines]
        return replace(told, data={**told.data, **changes}, summary=[*lines, *told.summary])

    with Terminal(voice) as progress:
        return each(place_of(Context(progress=progress, offline=offline), home), target, one)
