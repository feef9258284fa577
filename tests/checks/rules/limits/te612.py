"""TE612: a build folder of another build."""

from typing import Any

from tenv.checks.checkout_state import BuildCache, CacheEntry, CheckoutState


def built(*lines: str, gone: tuple[str, ...] = (), moved: str = "") -> dict[str, Any]:
    """Return a checkout with a cache of these lines."""
    rows = [line.partition("=")[::2] for line in lines]
    entries = {name.partition(":")[0]: CacheEntry(name.partition(":")[2], value) for name, value in rows}
    return {"torch": "2.9.1", "state": CheckoutState(cache=BuildCache("build/CMakeCache.txt", entries, gone, moved))}


SEVERITY = "error"
SPEAKS: dict[str, Any] = built("CUDA_TOOLKIT_ROOT_DIR:PATH=/usr/local/cuda-12.8", gone=("CUDA_TOOLKIT_ROOT_DIR",))
SILENT: list[dict[str, Any]] = [
    built(),
    built("USE_CUDA:BOOL=ON", "CMAKE_CXX_COMPILER:FILEPATH=/usr/bin/c++"),
    {**built("USE_CUDA:BOOL=OFF"), "cuda": None},
    {**built("CMAKE_CXX_COMPILER:FILEPATH=/e/bin/g++"), "activated": {"CXX": "/e/bin/g++"}},
    {**built("USE_CUDA:BOOL=0"), "manifest": {"environment": {"USE_CUDA": "0"}}},
]
ALSO: list[dict[str, Any]] = [
    built(moved="/elsewhere/pytorch"),
    built("USE_CUDA:BOOL=0"),
    {**built("USE_CUDA:BOOL=1"), "cuda": None},
    {**built("CMAKE_CXX_COMPILER:FILEPATH=/usr/bin/c++"), "activated": {"CXX": "/e/bin/g++"}},
    {**built("CUDA_TOOLKIT_ROOT_DIR:PATH=/usr/local/cuda-12.8"), "activated": {"CUDA_HOME": "/e/cuda"}},
]
