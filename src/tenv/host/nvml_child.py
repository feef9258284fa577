"""Query NVML for all values at once, through nvidia-ml-py.

A separate program: a driver library may hang or crash its process. It prints one JSON object in which every value is
``{"value": …}`` or ``{"error": …}``.
"""

import ctypes
import json
import sys
from collections.abc import Callable
from typing import Any


def main(folder: str) -> None:
    """Print NVML's answer.

    Args:
        folder: The folder of nvidia-ml-py; the interpreter runs without site packages, which is faster.
    """
    sys.path.append(folder)
    import pynvml as nvml  # late: found in the given folder

    def ask(call: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        try:
            return {"value": call(*arguments)}
        except (nvml.NVMLError, AttributeError) as error:  # an older nvidia-ml-py lacks a newer question
            return {"error": str(error).rstrip(".")}

    def fabric_state(handle: Any) -> int:
        info = nvml.c_nvmlGpuFabricInfo_v2_t()
        nvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(info))
        return int(info.state)

    def gpu(index: int) -> dict[str, Any]:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        return {
            "name": ask(nvml.nvmlDeviceGetName, handle),
            "capability": ask(nvml.nvmlDeviceGetCudaComputeCapability, handle),
            "memory": ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle).total),
            "device": ask(lambda: nvml.nvmlDeviceGetPciInfo(handle).pciDeviceId),
            "address": ask(lambda: nvml.nvmlDeviceGetPciInfo(handle).busId),
            "mig": ask(lambda: nvml.nvmlDeviceGetMigMode(handle)[0]),
            "fabric": ask(fabric_state, handle),
        }

    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        sys.exit(str(error).rstrip("."))
    count = ask(nvml.nvmlDeviceGetCount)
    answer = {
        "driver": ask(nvml.nvmlSystemGetDriverVersion),
        "cuda": ask(nvml.nvmlSystemGetCudaDriverVersion_v2),
        "count": count,
        "gpus": [ask(gpu, index) for index in range(count.get("value", 0))],
    }
    print(json.dumps(answer, default=lambda value: value.decode("utf-8", "replace")))  # noqa: T201 (its parent reads it)


if __name__ == "__main__":
    main(sys.argv[1])
