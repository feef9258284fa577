"""TE102: the driver is older than the toolkit, and runs it with a limit."""

from typing import Any

from tenv.core.versions import Version
from tenv.host.interface import Fact, OriginKind

DRIVER = Fact(Version("515.76"), "nvidia-smi", OriginKind.NVIDIA_SMI)

SEVERITY = "note"
SPEAKS: dict[str, Any] = {
    "cuda": "11.8",
    "gpus": (),
    "driver": Fact(Version("515.76"), "nvidia-smi", OriginKind.NVIDIA_SMI),
}
SILENT: list[dict[str, Any]] = [
    {"cuda": "11.8", "driver": Version("520.61.05")},
    {"cuda": "11.7", "driver": Version("515.76")},
    {"cuda": None},
]
