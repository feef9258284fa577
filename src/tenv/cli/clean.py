"""``tenv clean``."""

from collections.abc import Callable

import click

from tenv.cli.command import command
from tenv.cli.output import Result, Voice, format_bytes
from tenv.cli.table import print_table
from tenv.targets.sections import SECTIONS

__all__ = ["clean"]


def _source_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Add an option for each source that has a cache."""
    for section in reversed(SECTIONS):
        if section.cache:
            function = click.option(f"--{section.key}", is_flag=True, help=section.cache)(function)
    return function


@command("clean", short_help="Show the size of the caches, and empty them.")
@click.option("--leftovers", is_flag=True, help="Remove files that interrupted commands left.")
@_source_options
@click.option("--all", "everything", is_flag=True, help="Empty all caches and remove leftovers.")
def clean(voice: Voice, *, leftovers: bool, everything: bool, **named: bool) -> Result:  # noqa: ARG001
    """Show the size of the caches. With an option, empty them. Environments do not change."""
    from tenv.project.context import Context
    from tenv.verbs.clean import clean_caches

    keys = [key for key, wanted in named.items() if wanted or everything]
    rows = clean_caches(Context(), keys, leftovers=leftovers or everything, notes=everything)
    data = [
        {"name": row.name, "path": str(row.path), "bytes": row.bytes, "freed": row.freed}
        | {"left": [str(path) for path in row.left]}
        for row in rows
    ]

    def show() -> None:
        print_table(
            ("CACHE", "SIZE", "", "FOLDER"),
            [(row.name, format_bytes(row.bytes), "freed" if row.freed else "", row.path) for row in rows],
        )

    options = ", ".join(f"`--{key}`" for key in named)
    left = [f"left, since tenv did not make it: {path}" for row in rows for path in row.left]
    hint = (
        []
        if left or any(row.freed for row in rows)
        else [f"`tenv clean --leftovers`, {options} or `--all` empties them"]
    )
    return Result(data, text=show, summary=[*left, *hint])
