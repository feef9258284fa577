"""TE103: the driver is too old for the toolkit."""

from typing import Any

from tenv.core.versions import Version
from tenv.host.interface import Fact, OriginKind

DRIVER = Fact(Version("515.76"), "nvidia-smi", OriginKind.NVIDIA_SMI)

SEVERITY = "error"
SPEAKS: dict[str, Any] = {
    "cuda": "12.1",
    "gpus": (),
    "driver": Fact(Version("515.76"), "nvidia-smi", OriginKind.NVIDIA_SMI),
}
SILENT: list[dict[str, Any]] = [
    {"cuda": "12.1", "driver": Version("525.60.13")},
    {"cuda": None, "driver": Version("515.76")},
]
