"""TE705: a platform that the target is not for."""

from typing import Any

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"manifest": {"platforms": ("win-64",)}}
SILENT: list[dict[str, Any]] = [{}, {"platform": "win-64"}]
