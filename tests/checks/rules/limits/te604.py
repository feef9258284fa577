"""TE604: a revision that the target is not for."""

from typing import Any

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {"torch": "2.0.1"}
SILENT: list[dict[str, Any]] = [{"torch": "2.1.0"}, {"torch": "2.15.0"}, {}]
