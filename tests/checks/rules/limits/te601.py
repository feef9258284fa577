"""TE601: a CUDA that PyTorch rejects."""

from typing import Any

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "11.8", "torch": "2.15.0"}
SILENT: list[dict[str, Any]] = [{"cuda": "13.0", "torch": "2.15.0"}, {"cuda": "11.8"}]
