"""TE110: a Windows driver too old for WSL."""

from typing import Any

from tenv.core.versions import Version

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "11.3", "driver": Version("466.63"), "wsl": True}
SILENT: list[dict[str, Any]] = [
    {"cuda": "11.3", "driver": Version("472.12"), "wsl": True},
    {"cuda": "11.3", "driver": Version("466.63")},
    {"cuda": None, "driver": Version("466.63"), "wsl": True},
]
