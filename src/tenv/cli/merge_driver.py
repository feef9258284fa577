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

__all__ = ["merge_driver"]

_OF_GIT = 4


@command("merge-driver", short_help="Merge two locks by solving again, for git or after it.")
@click.argument("files", nargs=-1, metavar="LOCK | %O %A %B %P")
@click.option("--install", is_flag=True, help="Tell the git repository here to leave the merging of locks to tenv.")
@offline_option
def merge_driver(voice: Voice, *, files: tuple[str, ...], install: bool, offline: bool) -> Result:
    """Merge both sides of a lock: keep what they agree on, take the newer where they differ, and solve again.

    With --install, git does this by itself in every merge, rebase and cherry-pick, by calling it with four files. With
    one LOCK that git has left in conflict, it is done now.
    """
    from tenv.project.context import Context
    from tenv.verbs import merge as workflow  # late: loads what it needs

    if install == bool(files) or len(files) not in (0, 1, _OF_GIT):
        raise click.UsageError("name one lock that is in conflict, or give --install (git itself gives four files)")
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
        lines.append(f"`git add {merged.path}` marks it as resolved")
    return Result({"path": merged.path, "difference": merged.difference.to_json()}, summary=lines)


def _installed(done: "Installed", line: str) -> Result:
    said = f"{done.attributes} {'now has' if done.written else 'has'} the line `{line}`"
    data = {"driver": done.driver, "attributes": str(done.attributes), "line": line, "written": done.written}
    commit = ["commit it; everybody who merges runs `tenv merge-driver --install` once"] if done.written else []
    return Result(data, summary=[f"git merges locks by `{done.driver}`", said, *commit])
