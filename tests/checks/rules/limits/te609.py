"""TE609: a revision that the table of releases does not have."""

from typing import Any

SEVERITY = "note"
SPEAKS: dict[str, Any] = {"torch": "99.0"}
SILENT: list[dict[str, Any]] = [
    {},
    {"torch": "2.15.0"},
    {"torch": "2.15.0a0+git1234"},
    {"torch": "2.9.99"},
    {"torch": "1.8.0"},
]
