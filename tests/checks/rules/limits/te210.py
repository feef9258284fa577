"""TE210: an AMD GPU without kernels in rocBLAS."""

from typing import Any

from tests.checks.rules.cases import of_rocm, rocm

SEVERITY = "error"
ROCM: dict[str, Any] = of_rocm()["manifest"]
ONE = (rocm(kernels=("gfx1030",)),)
SPEAKS: dict[str, Any] = of_rocm("gfx1100", rocms=(rocm(kernels=("gfx90a", "gfx942")),))
SILENT: list[dict[str, Any]] = [
    of_rocm("gfx906", rocms=(rocm("6.3.0", parts=(), compiles=None),)),
    of_rocm("gfx906", rocms=(rocm("3.1", parts=(), compiles=None),)),
    of_rocm("gfx942", rocms=(rocm(kernels=("gfx90a", "gfx942")),)),
    of_rocm("gfx1100", rocms=(rocm(kernels=()),)),
    of_rocm("gfx1031", rocms=ONE, exported={"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}),
    of_rocm("gfx1031", rocms=ONE, manifest={**ROCM, "environment": {"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}}),
]
BARE: dict[str, Any] = {"parts": (), "compiles": None}
ALSO: list[dict[str, Any]] = [
    of_rocm("gfx906", rocms=(rocm("6.4.0", **BARE),)),
    of_rocm("gfx1036", rocms=(rocm("6.0.2", **BARE),)),
    *(
        of_rocm("gfx1031", rocms=ONE, exported={"HSA_OVERRIDE_GFX_VERSION": odd})
        for odd in ("10.3", "x", "10.3.0.1", "")
    ),
]
