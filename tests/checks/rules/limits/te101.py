"""TE101: no NVIDIA driver was detected."""

from typing import Any

from tenv.host.interface import Missing

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {
    "cuda": "12.1",
    "gpus": (),
    "driver": Missing("NVML: libnvidia-ml.so.1 is not there; nvidia-smi: not found on PATH"),
}
SILENT: list[dict[str, Any]] = [{}, {"cuda": None, "driver": Missing("no probe answered")}]
