"""TE203: GPUs with different compute capabilities."""

from typing import Any

from tenv.host.interface import Missing
from tests.checks.rules.cases import gpu

A100 = gpu("NVIDIA A100-SXM4-80GB", "8.0")
GTX = gpu("NVIDIA GeForce GTX 1660 Ti", "7.5")

SEVERITY = "note"
SPEAKS: dict[str, Any] = {"gpus": (A100, GTX)}
SILENT: list[dict[str, Any]] = [{"gpus": (A100, A100)}, {"gpus": Missing("no")}, {"cuda": None}]
