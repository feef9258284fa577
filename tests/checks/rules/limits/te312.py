"""TE312: a CUDA toolkit without a compiler."""

from typing import Any

from tenv.core.versions import Range
from tests.checks.rules.cases import archive, conda, wheel

RUNTIME = wheel("nvidia-cuda-runtime-cu12", "12.8.90")
REDIST = "https://127.0.0.1/redist/"

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "12.8", "wheels": (RUNTIME,)}
SILENT: list[dict[str, Any]] = [
    {"cuda": "13.0", "wheels": (wheel("nvidia-cuda-runtime", "13.0.96"), wheel("nvidia-cuda-nvcc", "13.0.88"))},
    {"cuda": "12.8", "conda": (conda("cuda-cudart", "12.8.90"), conda("cuda-nvcc_linux-64", "12.8.93"))},
    {"cuda": "11.8", "conda": (conda("cuda-cudart", "11.8.89"), conda("cuda-nvcc", "11.8.89", channel="nvidia"))},
    {"cuda": "12.8", "wheels": (RUNTIME,), "archives": (archive("cuda_nvcc", "12.8.93", f"{REDIST}cuda_nvcc.tar.xz"),)},
    {"cuda": "12.8", "wheels": (RUNTIME,), "manifest": {"system": {"cuda-toolkit": Range("12.*")}}},
    {"cuda": "12.8"},
    {"cuda": None, "wheels": (RUNTIME,)},
]
ALSO: list[dict[str, Any]] = [
    {"cuda": "13.0", "wheels": (wheel("nvidia-cuda-runtime", "13.0.96"),)},
    {"cuda": "12.8", "wheels": (RUNTIME, wheel("nvidia-cuda-nvcc-cu12", "12.8.93"))},
    {"cuda": "12.8", "conda": (conda("cuda-cudart", "12.8.90"),)},
    {"cuda": "12.8", "archives": (archive("cuda_cudart", "12.8.90", f"{REDIST}cuda_cudart.tar.xz"),)},
]
