"""TE311: a system toolkit with missing parts."""

from typing import Any

from tenv.core.versions import Range
from tests.checks.rules.cases import conda, toolkit

TAKES = {"system": {"cuda-toolkit": Range("*")}}
WHOLE = {"cuda_cudart": "12.8", "cuda_nvrtc": "12.8", "libcublas": "12.8", "libcufft": "11.3", "libcurand": "10.3"}
WHOLE |= {"libcusolver": "11.7", "libcusparse": "12.5"}


def machine(*absent: str, version: str = "12.8.1", path: str = "/usr/local/cuda-12.8", **more: Any) -> dict[str, Any]:
    found = toolkit(path, version, "nvcc on PATH", absent=absent, **more)
    return {"cuda": ".".join(version.split(".")[:2]), "manifest": TAKES, "toolkits": (found,)}


def listed(*without: str) -> dict[str, Any]:
    """Return a machine of a report that lists components and does not say what is absent."""
    components = tuple((name, version) for name, version in WHOLE.items() if name not in without)
    found = toolkit("/usr/local/cuda-12.8", "12.8.1", "nvcc on PATH", components=components)
    return {"cuda": "12.8", "manifest": TAKES, "toolkits": (found,)}


SEVERITY = "error"
SPEAKS: dict[str, Any] = machine("libcusparse", "cusparse.h")
SILENT: list[dict[str, Any]] = [
    machine(),
    machine("libnvToolsExt"),
    {**machine("libnvToolsExt"), "torch": "2.5.1"},
    {**machine("libcufile", "cufile.h"), "torch": "2.6.0"},
    {
        **machine("libcufile", "cufile.h"),
        "torch": "2.9.1",
        "manifest": {**TAKES, "environment": {"USE_CUFILE": "0"}},
    },
    {**machine("libcusparse"), "conda": (conda("libcusparse-dev", "12.5.8.93"),)},
    {**machine("libcusparse"), "manifest": {}},
    machine("libcublasLt", version="10.0.130"),
    listed(),
    listed(*WHOLE),
]
ALSO: list[dict[str, Any]] = [
    *(machine(name) for name in ("libcublas", "libcublasLt", "libcufft", "libcurand", "libcusolver", "libnvrtc")),
    *(machine(name) for name in ("libcuda", "libcudart", "ptxas", "cicc", "crt/host_config.h", "cuda.h")),
    {**machine("libcufile"), "torch": "2.9.1"},
    {**machine("libnvToolsExt"), "torch": "2.4.1"},
    {**machine("libcufile"), "manifest": {**TAKES, "pytorch": Range(">=2.8,<2.16")}},
    listed("libcusparse"),
    listed("cuda_nvrtc"),
]
