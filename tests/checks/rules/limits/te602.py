"""TE602: a Python that PyTorch rejects."""

from typing import Any

from tenv.core.versions import Range

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"torch": "2.12.0", "manifest": {"python": Range("3.9.*")}}
SILENT: list[dict[str, Any]] = [
    {"torch": "2.12.0", "manifest": {"python": Range(">=3.11,<3.13")}},
    {"manifest": {"python": Range("3.9.*")}},
]
