"""``tenv import``."""

from pathlib import Path

import click

from tenv.cli.command import FilePath, command, offline_option
from tenv.cli.lock import user_option
from tenv.cli.output import Result, Voice, count
from tenv.cli.progress_bar import Terminal


@command("import", short_help="Make a target from another tool's file.")
@click.argument("file", type=FilePath())
@click.option("--name", help="The target's name; default: the name of the file's environment or folder.")
@click.option("--format", "format_", help="The file's format; default: detected.")
@click.option("--environment", default="", metavar="NAME", help="The environment to import, if the file has several.")
@click.option("--platform", "platforms", multiple=True, metavar="NAME", help="A platform to import; default: all.")
@user_option
@click.option("--no-lock", is_flag=True, help="Write the manifest alone.")
@offline_option
@click.option("--force", is_flag=True, help="Overwrite an existing manifest and lock.")
def import_file(
    voice: Voice,
    *,
    file: Path,
    name: str | None,
    format_: str | None,
    environment: str,
    platforms: tuple[str, ...],
    user: bool,
    no_lock: bool,
    offline: bool,
    force: bool,
) -> Result:
    """Make a target from FILE of another tool.

    tenv reads pixi.lock, pixi.toml, conda-lock.yml, environment.yml, explicit lists, requirements.txt, pylock.toml,
    uv.lock, pyproject.toml (also of Poetry), Pipfile and setup.cfg. conda-lock.yml needs tenv's
    extra `conda-lock`; without it, an error has the line that installs it.

    tenv writes manifests/NAME.toml and, if the file has hashes, locks/NAME.lock in the project, or in the working
    folder, which becomes a project. It lists on standard error what a target can't hold. It asks the indexes for source
    archives and their build, and runs no code of them.
    """
    from tenv.project.context import Context
    from tenv.verbs import import_file as workflow  # late: heavy
    from tenv.verbs.lock_place import LockHome, place_of

    request = workflow.ImportRequest(file, format_, name, environment, platforms, force, not no_lock)
    with Terminal(voice) as progress:
        context = place_of(Context(progress=progress, offline=offline), LockHome.USER if user else LockHome.NEAREST)
        made = workflow.import_file(context, request, user=user)
    data = {
        "target": made.target,
        "format": made.format,
        "manifest": str(made.manifest),
        "lock": str(made.lock) if made.lock else None,
        "platforms": made.counts,
        "lost": list(made.lost),
        "notes": list(made.notes),
    }
    held = ", ".join(
        f"{platform} {count(row['conda'], 'conda package')} and {count(row['wheels'], 'wheel')}"
        for platform, row in made.counts.items()
    )
    written = [f"{made.manifest} written"]
    written += [f"{made.lock} written: {held}"] if made.lock else [f"`tenv lock {made.target}` locks it"]
    written += [f"{made.begun} is a project now"] if made.begun else []
    noted = [f"note: {line}" for line in made.notes]
    return Result(data, summary=[*written, *(f"not imported: {line}" for line in made.lost), *noted])
