"""TE207: a GPU that neither the driver nor a table describes."""

from typing import Any

from tests.checks.rules.cases import gpu

OTHER = gpu("NVIDIA GeForce RTX 5090 FOO", None)
T4 = gpu("Tesla T4", None)

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {"gpus": (OTHER,)}
SILENT: list[dict[str, Any]] = [
    {"gpus": (T4,)},
    {"gpus": (gpu("NVIDIA GeForce RTX 5090 FOO", "12.0"),)},
    {"gpus": (OTHER,), "cuda": None},
]
ALSO: list[dict[str, Any]] = [{"gpus": (OTHER, T4)}, {"gpus": (OTHER,), "arch_list": "12.0"}]
