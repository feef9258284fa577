"""Every rule that judges a target on a host, in the order in which findings are printed.

A new rule is a function from a `Case` to findings and a row here: the codes that it may yield, its topic, and the
verdict that its errors decide. ``docs/check.md`` lists the rows.
"""

from tenv.checks.rules import (
    checkout,
    compiler,
    driver,
    driver_findings,
    driver_gpu,
    driver_library,
    from_machine,
    gpu,
    hip,
    judged_driver,
    libc,
    libraries,
    pytorch,
    resources,
    toolkit,
    whole_toolkit,
)
from tenv.checks.rules.interface import Rule, Scope

_BUILD, _RUN, _BOTH = Scope.BUILD, Scope.RUN, Scope.BOTH

DRIVER_RULES: tuple[Rule, ...] = (
    Rule(driver.driver_rule, driver_findings.CODES, "the driver and the target's CUDA", _RUN),
    Rule(driver_library.other_library, (driver_library.OTHER,), "a libcuda that does not match", _RUN),
    Rule(driver_gpu.driver_branch, (driver_gpu.BRANCH,), "a driver that does not support the GPU", _RUN),
    Rule(driver_gpu.kernel_module, (driver_gpu.MODULE,), "a kernel module that does not support the GPU", _RUN),
    Rule(driver_gpu.wsl_driver, (driver_gpu.WSL,), "a Windows driver too old for WSL", _RUN),
    Rule(driver_gpu.vgpu_host, (driver_gpu.VGPU,), "the driver of a vGPU host", _RUN),
    Rule(driver_gpu.vgpu_license, (driver_gpu.LICENSE,), "a vGPU, which needs a license", _RUN),
    Rule(driver_gpu.fabric_manager, (driver_gpu.FABRIC,), "GPUs behind NVSwitch", _RUN),
    Rule(driver_library.unproven_library, (driver_library.UNPROVEN,), "a libcuda that is missing or unlisted", _RUN),
    Rule(driver_library.compressed_code, (driver_library.COMPRESSED,), "code that the driver can't read", _RUN),
    Rule(gpu.gpu_too_old, (gpu.TOO_OLD,), "a GPU that the toolkit no longer supports", _BOTH),
    Rule(gpu.gpu_too_new, (gpu.TOO_NEW,), "a GPU newer than the toolkit", _BOTH),
    Rule(gpu.arch_refused, (gpu.REFUSED,), "an architecture that nvcc does not support", _BUILD),
    Rule(gpu.gpu_unserved, (gpu.UNSERVED,), "a GPU that no built code runs on", _RUN),
    Rule(gpu.gpu_unknown, (gpu.UNKNOWN,), "a GPU that no table has", _BOTH),
)
"""The rules about the driver, the loader and the GPUs, which judge a toolkit alone, too."""

_OF_GPUS = (driver_gpu.BRANCH, driver_gpu.MODULE, gpu.TOO_OLD, gpu.TOO_NEW, gpu.REFUSED, gpu.UNSERVED, gpu.UNKNOWN)

GPU_RULES: tuple[Rule, ...] = tuple(rule for rule in DRIVER_RULES if rule.codes[0] in _OF_GPUS)
"""The rules about each GPU. A libcuda serves all GPUs of a process or none, and so does a driver."""

RULES: tuple[Rule, ...] = (
    *DRIVER_RULES,
    Rule(driver.override_rule, (judged_driver.USELESS,), "an unusable CONDA_OVERRIDE_CUDA", _BOTH),
    Rule(gpu.gpu_mixed, (gpu.MIXED,), "GPUs with different compute capabilities", _RUN),
    Rule(gpu.gpu_dropped, (gpu.DROPPED,), "a GPU that PyTorch no longer supports", _RUN),
    Rule(toolkit.mixed_releases, (toolkit.MIXED_RELEASES,), "packages of another CUDA release", _BOTH),
    Rule(toolkit.placeholders, (toolkit.PLACEHOLDER,), "placeholder packages", _BOTH),
    Rule(toolkit.wrong_major, (toolkit.WRONG_MAJOR,), "packages for another CUDA major", _BOTH),
    Rule(whole_toolkit.two_toolkits, (whole_toolkit.TWO_TOOLKITS,), "two toolkits on the host", _BUILD),
    Rule(libraries.library_of_other_cuda, (libraries.LIBRARY,), "a library for another CUDA", _BOTH),
    Rule(toolkit.mixed_halves, (toolkit.MIXED_HALVES,), "headers of another release", _BOTH),
    Rule(libraries.magma_of_other_cuda, (libraries.MAGMA,), "a MAGMA for another CUDA", _BUILD),
    Rule(whole_toolkit.contradictory, (whole_toolkit.CONTRADICTORY,), "an incomplete toolkit", _BUILD),
    Rule(from_machine.lacking, (from_machine.LACKING,), "a host without a required tool", _BUILD),
    Rule(toolkit.without_nvrtc, (toolkit.NVRTC,), "a toolkit without the NVRTC header", _BUILD),
    Rule(whole_toolkit.without_parts, (whole_toolkit.PARTS,), "a system toolkit with missing parts", _BUILD),
    Rule(toolkit.without_nvcc, (toolkit.NVCC,), "a toolkit without a compiler", _BUILD),
    Rule(toolkit.waits_for_torch, (toolkit.WAITS,), "a CUDA that waits for torch", _BOTH),
    Rule(toolkit.cpu_torch, (toolkit.CPU_TORCH,), "a torch without the target's CUDA", _BOTH),
    Rule(compiler.no_compiler, (compiler.NONE,), "no C++ compiler", _BUILD),
    Rule(compiler.too_new, (compiler.TOO_NEW,), "a compiler that nvcc rejects", _BUILD),
    Rule(compiler.breaks_nvcc, (compiler.BREAKS,), "a compiler that breaks nvcc", _BUILD),
    Rule(compiler.breaks_pytorch, (compiler.PYTORCH,), "a compiler that PyTorch fails with", _BUILD),
    Rule(compiler.too_old, (compiler.TOO_OLD,), "a compiler that is too old", _BUILD),
    Rule(compiler.msvc, (compiler.TOO_NEW, compiler.TOO_OLD), "an unsupported Visual C++", _BUILD),
    Rule(compiler.several, (compiler.SEVERAL,), "several C++ compilers", _BUILD),
    Rule(libc.glibc_headers, (libc.HEADERS,), "a glibc that breaks the toolkit's headers", _BUILD),
    Rule(libc.glibc_too_old, (libc.TOO_OLD,), "a glibc that is too old", _BOTH),
    Rule(libc.libstdcxx_too_old, (libc.LIBSTDCXX,), "a libstdc++ older than the g++", _RUN),
    Rule(libc.other_origin, (libc.ORIGINS,), "a compiler and a sysroot from different origins", _BUILD),
    Rule(hip.driver_unlisted, (hip.DRIVER,), "AMD's driver and ROCm", _RUN),
    Rule(hip.no_amd_gpu, (hip.NO_GPU,), "a host without an AMD GPU", _RUN),
    Rule(hip.gpu_unlisted, (hip.UNLISTED,), "an AMD GPU that ROCm does not list", _RUN),
    Rule(hip.gpu_refused, (hip.REFUSED,), "an architecture that HIP's compiler does not support", _BUILD),
    Rule(hip.without_kernels, (hip.KERNELS,), "an AMD GPU without kernels in rocBLAS", _RUN),
    Rule(hip.without_code, (hip.CODE,), "an AMD GPU that no built code runs on", _RUN),
    Rule(hip.without_parts, (hip.PARTS,), "a ROCm with missing parts", _BUILD),
    Rule(hip.without_core, (hip.CORE,), "a ROCm without its release", _BUILD),
    Rule(hip.beside_cuda, (hip.BESIDE_CUDA,), "a ROCm beside CUDA", _BUILD),
    Rule(hip.switched_off, (hip.OFF,), "a build with ROCm that turns ROCm off", _BUILD),
    Rule(hip.pytorch_unlisted, (hip.PYTORCH,), "a ROCm that PyTorch was not published for", _BUILD),
    Rule(pytorch.cuda_too_old, (pytorch.CUDA,), "a CUDA that PyTorch rejects", _BUILD),
    Rule(pytorch.cuda_tried, (pytorch.TRIED,), "a CUDA that PyTorch fails with", _BUILD),
    Rule(pytorch.python, (pytorch.PYTHON,), "a Python that PyTorch rejects", _BUILD),
    Rule(from_machine.without_headers, (from_machine.NO_HEADERS,), "a Python without headers", _BUILD),
    Rule(pytorch.driver_tried, (pytorch.DRIVER,), "a driver that PyTorch fails with", _RUN),
    Rule(from_machine.without_python, (from_machine.NO_PYTHON,), "an unavailable Python", _BUILD),
    Rule(pytorch.cmake, (pytorch.CMAKE,), "a CMake that PyTorch can't use", _BUILD),
    Rule(pytorch.other_revision, (pytorch.REVISION,), "a revision outside the target's range", _BUILD),
    Rule(pytorch.unlisted, (pytorch.UNLISTED,), "a revision without a row of facts", _BUILD),
    Rule(checkout.submodules, (checkout.SUBMODULES,), "missing submodules", _BUILD),
    Rule(checkout.hipified, (checkout.HIPIFIED,), "sources that are converted for ROCm", _BUILD),
    Rule(checkout.stale_build, (checkout.STALE,), "a stale build folder", _BUILD),
    Rule(libraries.library_of_other_revision, (libraries.REVISION,), "a library of another PyTorch era", _BUILD),
    Rule(pytorch.cxx_standard, (pytorch.STANDARD,), "a C++ standard that nvcc does not support", _BUILD),
    Rule(pytorch.abi, (pytorch.ABI,), "the libstdc++ ABI", _BUILD),
    Rule(pytorch.build_backend, (pytorch.BACKEND,), "a missing build backend", _BUILD),
    Rule(resources.memory, (resources.MEMORY,), "too little memory", _BUILD),
    Rule(resources.small_disk, (resources.DISK,), "too little disk space", _BOTH),
    Rule(resources.network_disk, (resources.NETWORK,), "a network file system", _BOTH),
    Rule(resources.ptrace, (resources.PTRACE,), "a debugger without permission to attach", _RUN),
    Rule(from_machine.platform, (from_machine.PLATFORM,), "a platform outside the target's list", _BOTH),
)

_OF_MACHINES = (resources.MEMORY, resources.DISK, resources.NETWORK)

MACHINE_RULES: tuple[Rule, ...] = tuple(rule for rule in RULES if rule.codes[0] in _OF_MACHINES)
"""The rules about memory and disk, whose numbers differ on nearly every machine of a fleet."""
