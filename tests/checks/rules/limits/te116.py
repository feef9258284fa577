"""TE116: AMD's driver and ROCm."""

from typing import Any

from tenv.core.versions import Version
from tests.checks.rules.cases import of_rocm, rocm

SEVERITY = "warning"
SPEAKS: dict[str, Any] = of_rocm(rocms=(rocm("7.2.0"),), amd_driver=Version("5.18.13"))
SILENT: list[dict[str, Any]] = [
    of_rocm(amd_driver=Version("6.14.14")),
    of_rocm(rocms=(rocm("7.1.0"),), amd_driver=Version("6.14.14")),
    of_rocm(rocms=(rocm("7.2.0"),), amd_driver=Version("6.12.12")),
    of_rocm(rocms=(rocm("7.2.0"),), amd_driver=Version("6.14.15")),
    {"amd_driver": Version("5.18.13")},
]
