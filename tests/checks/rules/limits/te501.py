"""TE501: a glibc that the toolkit can't compile with."""

from typing import Any

from tenv.core.versions import Version
from tenv.host.interface import Missing

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "12.6", "libc": Version("2.41")}
SILENT: list[dict[str, Any]] = [
    {"cuda": "12.6", "libc": Version("2.40")},
    {"libc": Version("2.41")},
    {"libc": Missing("no")},
]
