"""TE705: a platform outside the target's list."""

from typing import Any

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"manifest": {"platforms": ("win-64",)}}
SILENT: list[dict[str, Any]] = [{}, {"platform": "win-64"}]
