"""TE105: runs only by forward compatibility."""

from typing import Any

from tenv.core.versions import Version
from tenv.host.interface import Missing, ReasonKind
from tests.checks.rules.cases import gpu

A100 = gpu("NVIDIA A100-SXM4-80GB", "8.0")
GTX = gpu("NVIDIA GeForce GTX 1660 Ti", "7.5")
OWN = Missing("the driver's own comes first", ReasonKind.DRIVERS_OWN)

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"driver": Version("535.104.05"), "compat": OWN}
SILENT: list[dict[str, Any]] = [
    {},
    {"driver": Version("535.104.05"), "gpus": (A100, GTX)},
    {"driver": Version("525.60.13")},
    {"cuda": None},
]
