"""The rules about the driver, the loader and the GPUs, which `tenv check` and `tenv check-driver` ask alike."""

from tenv.checks.rules import driver_gpu, driver_library, driver_rules, gpu
from tenv.checks.rules.interface import Rule, Scope

__all__ = ["DRIVER_RULES"]

_BUILD, _RUN, _BOTH = Scope.BUILD, Scope.RUN, Scope.BOTH

DRIVER_RULES: tuple[Rule, ...] = (
    Rule(driver_rules.driver_rule, driver_rules.CODES, "the driver and the target's CUDA", _RUN),
    Rule(driver_library.other_library, (driver_library.OTHER,), "a libcuda that does not fit", _RUN),
    Rule(driver_gpu.driver_branch, (driver_gpu.BRANCH,), "a driver that does not drive the GPU", _RUN),
    Rule(driver_gpu.kernel_module, (driver_gpu.MODULE,), "a kernel module that does not drive the GPU", _RUN),
    Rule(driver_gpu.wsl_driver, (driver_gpu.WSL,), "a Windows driver that is too old for WSL", _RUN),
    Rule(driver_gpu.vgpu_host, (driver_gpu.VGPU,), "the driver of a vGPU host", _RUN),
    Rule(gpu.gpu_too_old, (gpu.TOO_OLD,), "a GPU that the toolkit has dropped", _BOTH),
    Rule(gpu.gpu_too_new, (gpu.TOO_NEW,), "a GPU that is newer than the toolkit", _BOTH),
    Rule(gpu.arch_refused, (gpu.REFUSED,), "an architecture that nvcc does not know", _BUILD),
    Rule(gpu.gpu_unserved, (gpu.UNSERVED,), "a GPU without code", _RUN),
)
