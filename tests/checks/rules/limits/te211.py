"""TE211: an AMD GPU that no built code runs on."""

from typing import Any

from tests.checks.rules.cases import of_rocm, rocm

SEVERITY = "error"
ROCMS = (rocm(compiles=None),)
SPEAKS: dict[str, Any] = of_rocm("gfx1102", rocms=ROCMS, exported={"PYTORCH_ROCM_ARCH": "gfx1100;gfx90a:xnack-"})
SILENT: list[dict[str, Any]] = [
    of_rocm("gfx1102", rocms=ROCMS),
    of_rocm("gfx1102", rocms=ROCMS, exported={"PYTORCH_ROCM_ARCH": "gfx11[0 gfx1102"}),
    of_rocm("gfx1102", rocms=ROCMS, exported={"PYTORCH_ROCM_ARCH": "gfx11-generic"}),
    of_rocm("gfx90a", rocms=ROCMS, exported={"PYTORCH_ROCM_ARCH": "gfx90a:sramecc+:xnack-"}),
    of_rocm(
        "gfx1102",
        rocms=ROCMS,
        exported={"PYTORCH_ROCM_ARCH": "gfx1100", "HSA_OVERRIDE_GFX_VERSION": "11.0.0"},
    ),
]
