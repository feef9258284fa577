"""``tenv facts``."""

from typing import Any

import click

from tenv.cli.command import command
from tenv.cli.output import Result, Voice, out
from tenv.cli.table import print_table

__all__ = ["facts"]


@command("facts", short_help="Show the compatibility tables and their sources.")
@click.argument("table", required=False)
def facts(voice: Voice, *, table: str | None) -> Result:  # noqa: ARG001
    """Print the rows of TABLE with their sources. Without TABLE, list the tables.

    tenv reads your own rows from TENV_FACTS (files and folders) and from `facts` in your configuration folder.
    """
    from tenv.project.context import Context
    from tenv.project.user_facts import list_tables, show_table

    if table is None:
        rows = list_tables(Context())
        return Result(rows, text=lambda: _print_list(rows), summary=("`tenv facts TABLE` prints the rows of a table",))
    data = show_table(Context(), table)
    return Result(data, text=lambda: _print_table(data))


def _print_list(rows: list[dict[str, Any]]) -> None:
    print_table(
        ("TABLE", "DATE", "ROWS", "NOT CONFIRMED", "OWN", "CONTENT"),
        [(row["name"], row["date"], row["rows"], row["unconfirmed"], row["own"], row["about"]) for row in rows],
    )


def _print_table(data: dict[str, Any]) -> None:
    from tenv.facts.table_files import LAYOUTS

    for number, (name, section) in enumerate(LAYOUTS[data["name"]].sections.items()):
        if number:
            out()
        columns = (*section.key, *section.columns)
        out(f"[{name}]")
        print_table(
            (*(column.upper() for column in columns), "CONFIRMED", "SOURCE"),
            [
                (*(_cell(row.get(column, "")) for column in columns), "yes" if row["confirmed"] else "NO", _source(row))
                for row in data["sections"][name]
            ],
        )


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}:{item}" for key, item in value.items())
    text = " ".join(str(item) for item in value) if isinstance(value, list) else str(value)
    return text or "-"


def _source(row: dict[str, Any]) -> str:
    own = "" if row["from"] == "built-in" else f" ({row['from']})"
    return f"{row['source']}{own}"
