"""TE117: a host without an AMD GPU."""

from typing import Any

from tenv.host.interface import Missing, ReasonKind
from tenv.host.report import KfdAccess
from tests.checks.rules.cases import of_rocm

SEVERITY = "error"
SPEAKS: dict[str, Any] = of_rocm(amd_gpus=Missing("no node is a GPU", ReasonKind.NONE))
SILENT: list[dict[str, Any]] = [
    of_rocm("gfx942"),
    of_rocm("gfx942", kfd=KfdAccess(opens=True, group="render")),
    of_rocm("gfx942", kfd=Missing("not in the text", ReasonKind.UNREPORTED)),
    of_rocm("gfx942", wsl=True, kfd=Missing("/dev/kfd: No such file or directory", ReasonKind.NONE)),
    {"kfd": KfdAccess(opens=False, group="render")},
    {"amd_gpus": Missing("no node is a GPU", ReasonKind.NONE)},
]
ALSO: list[dict[str, Any]] = [
    of_rocm("gfx942", kfd=KfdAccess(opens=False, group="render")),
    of_rocm("gfx942", kfd=Missing("/dev/kfd: No such file or directory", ReasonKind.NONE)),
]
