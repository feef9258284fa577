"""TE703: a network file system."""

from typing import Any

from tenv.host.interface import Missing
from tenv.host.report import Disk

GIB = 1 << 30
NFS = Disk("/nfs/me", 500 * GIB, "nfs4")

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {"disk": NFS}
SILENT: list[dict[str, Any]] = [{}, {"disk": Missing("no")}]
