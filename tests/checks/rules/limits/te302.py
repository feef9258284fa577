"""TE302: a package is an empty placeholder."""

from dataclasses import replace
from typing import Any

from tests.checks.rules.cases import wheel

FILE = "nvidia_nccl_cu13-0.0.0a0-py3-none-win_amd64.whl"

SEVERITY = "error"
SPEAKS: dict[str, Any] = {
    "platform": "win-64",
    "wheels": (replace(wheel("nvidia-nccl-cu13", "0.0.0a0", 1200), file=FILE),),
}
SILENT: list[dict[str, Any]] = [
    {"wheels": (wheel("nvidia-nccl-cu13", "0.0.0a0", 5_000_000),)},
    {"wheels": (wheel("nvidia-nccl-cu13", "2.30.7", 1200),)},
]
