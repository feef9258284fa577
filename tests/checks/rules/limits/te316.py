"""TE316: a ROCm without its release."""

from typing import Any

from tenv.core.versions import Version
from tests.checks.rules.cases import of_rocm, rocm

SEVERITY = "warning"
SPEAKS: dict[str, Any] = of_rocm(rocms=(rocm("5.7", "/usr", derived=True, hip=Version("5.7.31921")),))
SILENT: list[dict[str, Any]] = [
    of_rocm(rocms=(rocm(hip=Version("6.4.43484")),)),
]
