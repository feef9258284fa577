"""TE307: a MAGMA that is built for another CUDA."""

from typing import Any

from tests.checks.rules.cases import conda

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "13.0", "conda": (conda("magma-cuda121", "2.6.1", channel="pytorch"),)}
SILENT: list[dict[str, Any]] = [
    {"cuda": "12.1.1", "conda": (conda("magma-cuda121", "2.6.1"),)},
    {"cuda": None, "conda": (conda("magma-cuda121", "2.6.1"),)},
    {"conda": (conda("magma", "2.9.0"),)},
]
