"""``tenv bundle``."""

from pathlib import Path

import click

from tenv.cli.command import command, not_empty, offline_option, target_argument
from tenv.cli.output import Result, Voice, count, format_bytes
from tenv.cli.progress_bar import Terminal

__all__ = ["bundle"]


@command("bundle", short_help="Write a target and all of its files as one file.")
@target_argument
@click.option(
    "--platform",
    "platforms",
    multiple=True,
    callback=not_empty,
    help="Only the files of this platform; may be repeated. Default: all of the lock.",
)
@click.option("--python", "minor", default="", metavar="VERSION", help="Only the wheels of this Python, such as 3.12.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The file; default: TARGET.tenv in the working folder.",
)
@offline_option
def bundle(
    voice: Voice, *, target: str | None, platforms: tuple[str, ...], minor: str, output: Path | None, offline: bool
) -> Result:
    """Write the manifest, the lock and every file that the lock of TARGET names as one file, a plain tar.

    `tenv create --bundle FILE` makes the environment of it on a machine without a network. The same lock, options and
    release of tenv give the same bytes. Downloads stay in the store, so that a second bundle needs none;
    `tenv clean --archives` empties it.
    """
    from tenv.project.context import Context  # late: heavy
    from tenv.verbs import bundle as workflow

    with Terminal(voice) as progress:
        made = workflow.bundle(Context(progress=progress, offline=offline), target, output, platforms, minor)
    head = made.head
    served = ", ".join(head.platforms)
    python = f", Python {head.python}" if head.python else ""
    return Result(
        made.to_json(),
        summary=[
            f"{made.path}: {count(len(head.files), 'file')}, {format_bytes(made.bytes)}, for {served}{python}",
            f"  lock    sha256:{made.lock_digest}",
            f"  bundle  sha256:{made.digest}",
            f"  use it: tenv create {head.target} --bundle {made.path.name}",
        ],
    )
