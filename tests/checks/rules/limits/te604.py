"""TE604: a revision outside the target's range."""

from typing import Any

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {"torch": "2.0.1"}
SILENT: list[dict[str, Any]] = [{"torch": "2.1.0"}, {"torch": "2.15.0"}, {}]
