"""The rules about the driver, the loader and the GPUs, which `tenv check` and `tenv check-driver` share."""

from tenv.checks.rules import compressed_code, driver_gpu, driver_library, driver_rules, gpu
from tenv.checks.rules.interface import Rule, Scope

__all__ = ["DRIVER_RULES", "GPU_RULES"]

_BUILD, _RUN, _BOTH = Scope.BUILD, Scope.RUN, Scope.BOTH

DRIVER_RULES: tuple[Rule, ...] = (
    Rule(driver_rules.driver_rule, driver_rules.CODES, "the driver and the target's CUDA", _RUN),
    Rule(driver_library.other_library, (driver_library.OTHER,), "a libcuda that does not match", _RUN),
    Rule(driver_gpu.driver_branch, (driver_gpu.BRANCH,), "a driver that does not support the GPU", _RUN),
    Rule(driver_gpu.kernel_module, (driver_gpu.MODULE,), "a kernel module that does not support the GPU", _RUN),
    Rule(driver_gpu.wsl_driver, (driver_gpu.WSL,), "a Windows driver too old for WSL", _RUN),
    Rule(driver_gpu.vgpu_host, (driver_gpu.VGPU,), "the driver of a vGPU host", _RUN),
    Rule(compressed_code.compressed_code, (compressed_code.COMPRESSED,), "code that the driver can't read", _RUN),
    Rule(gpu.gpu_too_old, (gpu.TOO_OLD,), "a GPU that the toolkit no longer supports", _BOTH),
    Rule(gpu.gpu_too_new, (gpu.TOO_NEW,), "a GPU newer than the toolkit", _BOTH),
    Rule(gpu.arch_refused, (gpu.REFUSED,), "an architecture that nvcc does not support", _BUILD),
    Rule(gpu.gpu_unserved, (gpu.UNSERVED,), "a GPU that no built code runs on", _RUN),
)

_OF_GPUS = (driver_gpu.BRANCH, driver_gpu.MODULE, gpu.TOO_OLD, gpu.TOO_NEW, gpu.REFUSED, gpu.UNSERVED)

GPU_RULES: tuple[Rule, ...] = tuple(rule for rule in DRIVER_RULES if rule.codes[0] in _OF_GPUS)
"""Those of them that are about each GPU. A libcuda serves all GPUs of a process or none, and so does a driver."""
