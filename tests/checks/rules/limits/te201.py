"""TE201: a GPU that the toolkit no longer supports."""

from typing import Any

from tests.checks.rules.cases import gpu

K80 = gpu("Tesla K80", "3.7")
GTX = gpu("NVIDIA GeForce GTX 1660 Ti", "7.5")

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"gpus": (K80,)}
SILENT: list[dict[str, Any]] = [{"gpus": (GTX,)}, {"gpus": (K80,), "cuda": "11.8"}, {"gpus": ()}]
