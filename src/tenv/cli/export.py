"""``tenv export``."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenv.cli.command import FilePath, command, offline_option, prefix_option
from tenv.cli.output import Result, Voice
from tenv.cli.progress_bar import Terminal
from tenv.core.errors import UsageError

if TYPE_CHECKING:
    from tenv.verbs.export import Written


@command("export", short_help="Write a target's lock for another tool.")
@click.argument("format")
@click.argument("target", required=False)
@click.option(
    "--output",
    "-o",
    type=FilePath(),
    default=Path(),
    help="The file to write where the format is one, else the folder; `-` to print.",
)
@click.option("--platform", "platforms", multiple=True, metavar="NAME", help="A platform to write; default: all.")
@click.option("--python", default="", metavar="MINOR", help="Write the wheels of one Python minor alone.")
@click.option(
    "--lock-file",
    type=FilePath(dir_okay=False),
    help="The lock to export; default: the target's own.",
)
@click.option(
    "--requests", is_flag=True, help="environment.yml: write the requests of the manifest, not the locked packages."
)
@click.option("--md5", is_flag=True, help="explicit: MD5 instead of sha256, for conda before 23.11.")
@prefix_option
@click.option(
    "--at",
    type=FilePath(),
    metavar="PATH",
    help="squashfs: the mount point, which is the folder in which the environment was made.",
)
@click.option("--base", default="", metavar="IMAGE", help="The image of a container; the one that fits when left out.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@offline_option
def export(
    voice: Voice,
    *,
    format: str,  # noqa: A002 (the word of the command line)
    target: str | None,
    output: Path,
    platforms: tuple[str, ...],
    python: str,
    lock_file: Path | None,
    requests: bool,
    md5: bool,
    prefix: Path | None,
    at: Path | None,
    base: str,
    force: bool,
    offline: bool,
) -> Result:
    """Write the lock of TARGET in FORMAT: pixi, conda-lock, explicit, environment.yml, requirements.txt or pylock.toml.

    tenv lists on standard error what the format can't hold. conda-lock.yml needs tenv's extra
    `conda-lock`; without it, an error has the line that installs it. vscode, direnv and clangd write files that use the
    environment on this machine. They extend existing files and keep your values, unless --force is given. dockerfile,
    devcontainer, apptainer and github-actions write files that create the environment elsewhere. For clusters,
    modulefile is the environment for `module load`, squashfs is its image in one file, and slurm is a prolog that
    drains nodes on which the target does not run. schema takes no TARGET and writes the JSON schema of manifests for
    editors.
    """
    from tenv.project.context import Context
    from tenv.verbs import export as workflow  # late: heavy

    if at and (prefix or format != "squashfs"):
        raise click.UsageError("--at is the mount point of squashfs, in place of --prefix")
    with Terminal(voice) as progress:
        context = Context(progress=progress, offline=offline)
        request = workflow.ExportRequest(
            format=format,
            target=target,
            lock_file=lock_file,
            platforms=platforms,
            python=python,
            requests=requests,
            md5=md5,
            folder=Path() if str(output) == "-" else output,
            prefix=prefix or at,
            base=base,
        )
        written = workflow.export(context, request)
    return _printed(written, format) if str(output) == "-" else _stored(written, format, output, force=force)


def _data(written: "Written", format: str) -> dict[str, Any]:  # noqa: A002 (the word of the command line)
    name = written.target.name if written.target else None
    data: dict[str, Any] = {"format": format, "target": name, "lost": list(written.exported.lost)}
    return data | ({"notes": list(written.exported.notes)} if written.exported.notes else {})


def _lost(written: "Written") -> list[str]:
    return [f"not exported: {line}" for line in written.exported.lost]


def _printed(written: "Written", format: str) -> Result:  # noqa: A002
    """Return the only file of an export, to be printed."""
    files = written.exported.files
    if written.exported.write:
        raise click.UsageError(f"{format} is no text: `--output FILE` writes it")
    if len(files) != 1:
        raise click.UsageError(f"{format} is {len(files)} files ({', '.join(files)}): `--output` must be a folder")
    text = next(iter(files.values())).decode()
    written = replace(written, exported=written.exported.at(Path(next(iter(files)))))
    return Result({**_data(written, format), "files": [], "text": text}, text=text, summary=_lost(written))


def _stored(written: "Written", format: str, output: Path, *, force: bool) -> Result:  # noqa: A002
    """Write the files of an export."""
    from tenv.verbs.export import write  # late: heavy

    placed, folder = _placed(written, output)
    if not folder.exists() and not folder.parent.is_dir():  # one folder is made, not a path with a typing error
        raise UsageError(f"{folder.parent}: no such folder", hint=f"`mkdir -p {folder.parent}` makes it")
    paths, kept = write(placed, folder, force=force)
    written = replace(written, exported=written.exported.at(paths[0]))
    files = [str(path) for path in paths]
    lost = _lost(written) + [f"kept (`--force` replaces it): {line}" for line in kept]
    data = _data(written, format) | ({"kept": kept} if kept else {})
    summary = [f"{', '.join(files)} written", *lost, *written.exported.notes]
    return Result({**data, "files": files}, summary=summary)


def _placed(written: "Written", output: Path) -> "tuple[Written, Path]":
    """Return the exported files, under the name that `-o` gives to a single file, and the folder to write to."""
    files = written.exported.files
    own = next(iter(files), "")
    named = output.suffix or output.name == own or not (Path(own).suffix or own.startswith("."))
    if len(files) != 1 or "/" in own or not output.name or not named or output.is_dir():
        return written, output
    exported = replace(written.exported, files={output.name: files[own]})
    return replace(written, exported=exported), output.parent
