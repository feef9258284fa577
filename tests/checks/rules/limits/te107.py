"""TE107: an unusable CONDA_OVERRIDE_CUDA."""

from typing import Any

from tenv.host.interface import Missing
from tests.checks.rules.cases import override

SOON: dict[str, Any] = {"driver": Missing("no probe answered"), "offers": override("99.9")}

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {"offers": override("cuda12.4")}
SILENT: list[dict[str, Any]] = [
    {"offers": override("")},
    {"offers": Missing("NVML: no libnvidia-ml.so.1")},
    {**SOON, "offers": override("12.4")},
    {**SOON, "offers": override("12.7")},
    {"offers": SOON["offers"]},
]
