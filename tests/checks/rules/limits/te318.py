"""TE318: a build with ROCm that turns ROCm off."""

from typing import Any

from tests.checks.rules.cases import of_rocm

SEVERITY = "error"
SPEAKS: dict[str, Any] = of_rocm(exported={"USE_ROCM": "0"})
SILENT: list[dict[str, Any]] = [
    of_rocm(),
    of_rocm(exported={"USE_ROCM": "1"}),
    of_rocm(exported={"USE_ROCM": "0"}, manifest={**of_rocm()["manifest"], "environment": {"USE_ROCM": "1"}}),
    {"exported": {"USE_ROCM": "0"}},
]
ALSO: list[dict[str, Any]] = [of_rocm(manifest={**of_rocm()["manifest"], "environment": {"USE_ROCM": "off"}})]
