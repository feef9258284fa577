"""``tenv clean``."""

from collections.abc import Callable

import click

from tenv.cli.command import command
from tenv.cli.output import Result, Voice, format_bytes
from tenv.cli.table import print_table
from tenv.targets.sections import SECTIONS

__all__ = ["clean"]


def _source_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Add an option for each source that keeps what it has fetched."""
    for section in reversed(SECTIONS):
        if section.cache:
            function = click.option(f"--{section.key}", is_flag=True, help=section.cache)(function)
    return function


@command("clean", short_help="Show what the caches hold, and free it.")
@click.option("--leftovers", is_flag=True, help="Remove what interrupted removals left behind.")
@_source_options
@click.option("--all", "everything", is_flag=True, help="All of these.")
def clean(voice: Voice, *, leftovers: bool, everything: bool, **named: bool) -> Result:  # noqa: ARG001
    """Show what the caches hold; with an option, free it. Environments stay as they are."""
    from tenv.project.context import Context
    from tenv.verbs.clean import clean_caches

    keys = [key for key, wanted in named.items() if wanted or everything]
    rows = clean_caches(Context(), keys, leftovers=leftovers or everything)
    data = [{"name": row.name, "path": str(row.path), "bytes": row.bytes, "freed": row.freed} for row in rows]

    def show() -> None:
        print_table(
            ("CACHE", "SIZE", "", "FOLDER"),
            [(row.name, format_bytes(row.bytes), "freed" if row.freed else "", row.path) for row in rows],
        )

    freed = any(row.freed for row in rows)
    options = ", ".join(f"`--{key}`" for key in named)
    hint = [] if freed else [f"free it with `tenv clean --leftovers`, {options} or `--all`"]
    return Result(data, text=show, summary=hint)
