"""TE701: little memory."""

from typing import Any

GIB = 1 << 30

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {"memory": 4 * GIB}
SILENT: list[dict[str, Any]] = [{"memory": 9 * GIB // 2}, {"memory": 4 * GIB, "cuda": None}]
