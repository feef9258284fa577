"""``tenv clean``."""

import click

from tenv.cli.command import command
from tenv.cli.output import Result, Voice, format_bytes
from tenv.cli.table import print_table

__all__ = ["clean"]


@command("clean", short_help="Show what the caches hold, and free it.")
@click.option("--leftovers", is_flag=True, help="Remove what interrupted removals left behind.")
@click.option("--wheels", is_flag=True, help="Empty uv's cache of wheels, which every use of uv shares.")
@click.option("--conda", is_flag=True, help="Empty the cache of conda packages, which pixi shares.")
@click.option("--archives", is_flag=True, help="Empty the store of archives, packed and unpacked.")
@click.option("--all", "everything", is_flag=True, help="All of these.")
def clean(voice: Voice, *, leftovers: bool, wheels: bool, conda: bool, archives: bool, everything: bool) -> Result:  # noqa: ARG001
    """Show what the caches hold; with an option, free it. Environments stay as they are."""
    from tenv.project.context import Context  # noqa: PLC0415
    from tenv.verbs.clean import clean_caches  # noqa: PLC0415

    rows = clean_caches(
        Context(),
        leftovers=leftovers or everything,
        wheels=wheels or everything,
        conda=conda or everything,
        archives=archives or everything,
    )
    data = [{"name": row.name, "path": str(row.path), "bytes": row.bytes, "freed": row.freed} for row in rows]

    def show() -> None:
        print_table(
            ("CACHE", "SIZE", "", "FOLDER"),
            [(row.name, format_bytes(row.bytes), "freed" if row.freed else "", row.path) for row in rows],
        )

    freed = any(row.freed for row in rows)
    hint = [] if freed else ["free it with `tenv clean --leftovers`, `--wheels`, `--conda`, `--archives` or `--all`"]
    return Result(data, text=show, summary=hint)
