"""Show the tables of facts, the user's rows among them."""

from typing import Any

from tenv.core.errors import UsageError
from tenv.core.toml_reader import nearest
from tenv.facts.table_files import LAYOUTS, Data, Row
from tenv.facts.tables import Facts, default_overrides, load_facts
from tenv.project.context import Context
from tenv.targets.search import Origin

__all__ = ["list_tables", "show_table", "user_facts"]


def user_facts(context: Context) -> Facts:
    """Return the tables with the rows of this user; raises FactsError when a file of theirs can't be used."""
    folder = next(place.folder for place in context.places.places if place.origin is Origin.USER)
    return load_facts(default_overrides(context.environ, folder))


def list_tables(context: Context) -> list[dict[str, Any]]:
    """Return every table: its name, what it is, its date, and how many rows it has, not confirmed ones and the user's.

    Raises:
        FactsError: A file of the user can't be used.
    """
    facts = user_facts(context)
    return [_summary(_data(facts, name)) for name in LAYOUTS]


def show_table(context: Context, name: str) -> dict[str, Any]:
    """Return a table with all its rows, each with its source.

    Args:
        context: Where things are found.
        name: The name of the table.

    Raises:
        UsageError: There is no table of that name.
        FactsError: A file of the user can't be used.
    """
    if name not in LAYOUTS:
        hint = nearest(name, LAYOUTS) or f"the tables are {', '.join(LAYOUTS)}"
        raise UsageError(f"there is no table of facts `{name}`", hint=hint)
    data = _data(user_facts(context), name)
    sections = {section: [_plain(row) for row in rows] for section, rows in data.sections.items()}
    return {**_summary(data), "sections": sections}


def _data(facts: Facts, name: str) -> Data:
    """Return a table's rows; those of the user are read as a lookup would, so that a fault of theirs is told here."""
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
