"""TE314: a torch without the target's CUDA."""

from dataclasses import replace
from typing import Any

from tenv.locks.lock import CondaPackage
from tests.checks.rules.cases import conda, wheel

CUDA = 'nvidia-cuda-runtime-cu12==12.8.90; platform_system == "Linux"'


def torch(version: str, *requires: str) -> Any:
    return replace(wheel("torch", version), requires=requires)


def built(build: str) -> CondaPackage:
    return replace(conda("pytorch", "2.9.1"), build=build)


SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "12.8", "wheels": (torch("2.9.1", "filelock"),)}
SILENT: list[dict[str, Any]] = [
    {"cuda": "12.8", "wheels": (torch("2.9.1", CUDA),)},
    {"cuda": "12.6", "wheels": (torch("2.9.1+cu126"),)},
    {"cuda": "13.0", "wheels": (torch("2.14.1", "cuda-toolkit[cublas]==13.0.3"),)},
    {"cuda": "10.2", "wheels": (torch("1.12.1"),)},
    {"cuda": "12.8", "wheels": (wheel("torch", "2.9.1"),)},
    {"cuda": None, "wheels": (torch("2.9.1+cpu"),)},
    {"cuda": "12.8", "conda": (built("cuda129_mkl_py312_h0d04637_301"),)},
    {"cuda": "12.4", "conda": (built("py3.12_cuda12.4_cudnn9.1.0_0"),)},
    {"cuda": "12.8", "conda": (built("gpu_mkl_py312h0_0"),)},
]
ALSO: list[dict[str, Any]] = [
    {"cuda": "12.8", "wheels": (torch("2.9.1+cpu", "filelock"),)},
    {"cuda": "12.8", "wheels": (torch("2.9.1+cu126"),)},
    {"cuda": "12.8", "wheels": (torch("2.9.1", CUDA),), "platform": "win-64"},
    {"cuda": "12.8", "conda": (built("cpu_mkl_py312_h0d04637_101"),)},
    {"cuda": "12.8", "conda": (built("cuda118_py311h4ee7bbc_301"),)},
]
