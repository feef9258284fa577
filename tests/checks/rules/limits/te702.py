"""TE702: too little disk space."""

from typing import Any

from tenv.host.report import Disk
from tests.checks.rules.cases import wheel

GIB = 1 << 30

SEVERITY = "error"
SPEAKS: dict[str, Any] = {
    "wheels": (wheel("nvidia-cublas", "13.1", 3 * GIB),),
    "disk": Disk("/home/me", 6 * GIB - 1, "ext4"),
}
SILENT: list[dict[str, Any]] = [
    {"wheels": (wheel("nvidia-cublas", "13.1", 3 * GIB),), "disk": Disk("/home/me", 6 * GIB, "ext4")}
]
