"""TE313: a CUDA that waits for torch."""

from typing import Any

from tenv.core.versions import Range, Version
from tenv.targets.manifest import Requirements, WheelRequest

TORCH = {"torch": WheelRequest(Range("2.14.*"))}
OPEN = Requirements(None, Version("2.28"), "torch")

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {"cuda": None, "manifest": {"requirements": OPEN, "wheels": TORCH}}
SILENT: list[dict[str, Any]] = [
    {"manifest": {"requirements": Requirements(Version("13.0"), Version("2.28"), "torch"), "wheels": TORCH}},
    {"cuda": None, "manifest": {"requirements": Requirements(), "wheels": TORCH}},
]
