"""The compatibility tables, with the user's rows."""

from typing import Any

from tenv.core.errors import UsageError
from tenv.core.toml_reader import nearest
from tenv.facts.table_files import LAYOUTS, Data, Row
from tenv.facts.tables import Facts
from tenv.project.context import Context


def list_tables(context: Context) -> list[dict[str, Any]]:
    """Return every table: name, content, date, and the number of rows, of unconfirmed rows and of the user's rows.

    Raises:
        FactsError: A file of the user is not valid.
    """
    facts = context.facts()
    return [_summary(_data(facts, name)) for name in LAYOUTS]


def show_table(context: Context, name: str) -> dict[str, Any]:
    """Return a table with all rows, each with its source.

    Args:
        context: The context of the verb.
        name: The name of the table.

    Raises:
        UsageError: The table does not exist.
        FactsError: A file of the user is not valid.
    """
    if name not in LAYOUTS:
        hint = nearest(name, LAYOUTS) or f"the tables are {', '.join(LAYOUTS)}"
        raise UsageError(f"there is no table `{name}`", hint=hint)
    data = _data(context.facts(), name)
    sections = {section: [_plain(row) for row in rows] for section, rows in data.sections.items()}
    return {**_summary(data), "sections": sections}


def _data(facts: Facts, name: str) -> Data:
    """Return a table's rows. The user's rows are parsed too, so an invalid row raises its error here."""
    data = facts.data(name)
    if any(row.origin for rows in (*data.sections.values(), data.tables.values()) for row in rows):
        getattr(facts, name)
    return data


def _summary(data: Data) -> dict[str, Any]:
    rows = [row for section in data.sections.values() for row in section]
    return {
        "name": data.name,
        "about": LAYOUTS[data.name].about,
        "date": data.date,
        "rows": len(rows),
        "unconfirmed": sum(not row.table.flag("confirmed") for row in rows),
        "own": sum(bool(row.origin) for row in rows),
    }


def _plain(row: Row) -> dict[str, Any]:
    confirmed = row.table.flag("confirmed")
    return {**row.table.data, "confirmed": confirmed, "source": row.source, "from": row.origin or "built-in"}
