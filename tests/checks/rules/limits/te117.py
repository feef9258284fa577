"""TE117: a host without an AMD GPU."""

from typing import Any

from tenv.host.interface import Missing, ReasonKind
from tests.checks.rules.cases import of_rocm

SEVERITY = "error"
SPEAKS: dict[str, Any] = of_rocm(amd_gpus=Missing("no node is a GPU", ReasonKind.NONE))
SILENT: list[dict[str, Any]] = [
    of_rocm("gfx942"),
    {"amd_gpus": Missing("no node is a GPU", ReasonKind.NONE)},
]
