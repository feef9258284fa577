"""TE209: an architecture that HIP's compiler does not support."""

from typing import Any

from tests.checks.rules.cases import of_rocm, rocm

SEVERITY = "error"
SPEAKS: dict[str, Any] = of_rocm(exported={"PYTORCH_ROCM_ARCH": "gfx90a;gfx1201"})
SILENT: list[dict[str, Any]] = [
    of_rocm(exported={"PYTORCH_ROCM_ARCH": "gfx90a:xnack-;gfx1100"}),
    of_rocm("gfx1201", exported={"PYTORCH_ROCM_ARCH": "gfx1100"}),
    of_rocm("gfx1201", exported={"PYTORCH_ROCM_ARCH": "gfx11-generic;gfx9-4-generic:xnack+"}),
    of_rocm("gfx1201", rocms=(rocm(compiles=None),)),
    {"exported": {"PYTORCH_ROCM_ARCH": "gfx1201"}},
]
ALSO: list[dict[str, Any]] = [
    of_rocm("gfx1201"),
    of_rocm("gfx1201", rocms=(rocm("5.7", "/usr", compiles=None),)),
]
