"""TE607: the libstdc++ ABI."""

from typing import Any

SEVERITY = "note"
SPEAKS: dict[str, Any] = {"torch": "2.6.0"}
SILENT: list[dict[str, Any]] = [{"torch": "2.7.1"}, {}, {"torch": "2.6.0", "platform": "win-64"}]
