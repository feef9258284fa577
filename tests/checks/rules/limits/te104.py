"""TE104: the toolkit is not in the table of drivers."""

from typing import Any

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {"cuda": "14.0"}
SILENT: list[dict[str, Any]] = [{"cuda": "13.0"}, {"cuda": None}]
