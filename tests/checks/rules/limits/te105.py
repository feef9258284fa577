"""TE105: runs by forward compatibility alone."""

from typing import Any

from tenv.core.versions import Version
from tests.checks.rules.cases import gpu

A100 = gpu("NVIDIA A100-SXM4-80GB", "8.0")
GTX = gpu("NVIDIA GeForce GTX 1660 Ti", "7.5")

SEVERITY = "note"
SPEAKS: dict[str, Any] = {"driver": Version("535.104.05")}
SILENT: list[dict[str, Any]] = [
    {},
    {"driver": Version("535.104.05"), "gpus": (A100, GTX)},
    {"driver": Version("530.30.02")},
    {"cuda": None},
]
