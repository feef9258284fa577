"""TE502: a glibc that is too old."""

from typing import Any

from tenv.core.versions import Version
from tenv.host.interface import Missing

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"libc": Version("2.27")}
SILENT: list[dict[str, Any]] = [{"libc": Version("2.28")}, {"libc": Missing("no")}]
