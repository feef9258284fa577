"""``tenv merge-driver``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenv.cli.command import command, offline_option
from tenv.cli.diff import outline
from tenv.cli.output import Result, Voice
from tenv.cli.progress_bar import Terminal

if TYPE_CHECKING:
    from tenv.verbs.merge import Installed

_OF_GIT = 4


@command("merge-driver", short_help="Merge two versions of a lock by solving again.")
@click.argument("files", nargs=-1, metavar="LOCK | %O %A %B %P")
@click.option("--install", is_flag=True, help="Configure this git repository to merge locks with tenv.")
@offline_option
def merge_driver(voice: Voice, *, files: tuple[str, ...], install: bool, offline: bool) -> Result:
    """Merge both sides of a lock: keep equal versions, prefer the newer of two, and solve again.

    With --install, git runs this command with four files in every merge, rebase and cherry-pick. With one LOCK in
    conflict, tenv merges it now.
    """
    from tenv.project.context import Context
    from tenv.verbs import merge as workflow  # late: heavy

    if install == bool(files) or len(files) not in (0, 1, _OF_GIT):
        raise click.UsageError("expected one lock in conflict, the four files of git, or --install")
    if install:
        return _installed(workflow.install_driver(Context()), workflow.ATTRIBUTES)
    with Terminal(voice) as progress:
        context = Context(progress=progress, offline=offline)
        if len(files) == 1:
            merged = workflow.merge_in_conflict(context, Path(files[0]))
        else:
            base, ours, theirs, path = files
            merged = workflow.merge_for_git(context, Path(base), Path(ours), Path(theirs), path)
    lines = [f"{merged.path}: solved again from both sides", *outline(merged.difference)]
    if len(files) == 1:
        lines.append(f"`git add {merged.path}` marks the conflict as resolved")
    return Result({"path": merged.path, "difference": merged.difference.to_json()}, summary=lines)


def _installed(done: "Installed", line: str) -> Result:
    attributes = f"{done.attributes} {'now has' if done.written else 'has'} the line `{line}`"
    data = {"driver": done.driver, "attributes": str(done.attributes), "line": line, "written": done.written}
    commit = ["commit the file; each clone runs `tenv merge-driver --install` once"] if done.written else []
    return Result(data, summary=[f"git merges locks with `{done.driver}`", attributes, *commit])
