"""Every rule that judges a target on a host, in the order in which findings are printed.

A new rule is a function from a `Case` to findings and a row here: the codes that it may yield, its topic, and the
verdict that its errors decide. ``docs/check.md`` lists the rows.
"""

from tenv.checks.rules import (
    checkout,
    compiler,
    compiler_breaks,
    driver_rules,
    era,
    from_machine,
    gpu,
    libc,
    libraries,
    python_headers,
    pytorch,
    resources,
    sysroot,
    toolkit,
    toolkit_in_sight,
    toolkit_parts,
    tried,
    whole_toolkit,
)
from tenv.checks.rules.driver_family import DRIVER_RULES
from tenv.checks.rules.interface import Rule, Scope

__all__ = ["RULES"]

_BUILD, _RUN, _BOTH = Scope.BUILD, Scope.RUN, Scope.BOTH

RULES: tuple[Rule, ...] = (
    *DRIVER_RULES,
    Rule(driver_rules.override_rule, (driver_rules.USELESS,), "an unusable CONDA_OVERRIDE_CUDA", _BOTH),
    Rule(gpu.gpu_mixed, (gpu.MIXED,), "GPUs with different compute capabilities", _RUN),
    Rule(gpu.gpu_dropped, (gpu.DROPPED,), "a GPU that PyTorch no longer supports", _RUN),
    Rule(toolkit.mixed_releases, (toolkit.MIXED_RELEASES,), "packages of another CUDA release", _BOTH),
    Rule(toolkit.placeholders, (toolkit.PLACEHOLDER,), "placeholder packages", _BOTH),
    Rule(toolkit.wrong_major, (toolkit.WRONG_MAJOR,), "packages for another CUDA major", _BOTH),
    Rule(toolkit_in_sight.two_toolkits, (toolkit_in_sight.TWO_TOOLKITS,), "two toolkits on the host", _BUILD),
    Rule(libraries.library_of_other_cuda, (libraries.LIBRARY,), "a library for another CUDA", _BOTH),
    Rule(toolkit.mixed_halves, (toolkit.MIXED_HALVES,), "headers of another release", _BOTH),
    Rule(libraries.magma_of_other_cuda, (libraries.MAGMA,), "a MAGMA for another CUDA", _BUILD),
    Rule(toolkit_in_sight.contradictory, (toolkit_in_sight.CONTRADICTORY,), "an incomplete toolkit", _BUILD),
    Rule(from_machine.lacking, (from_machine.LACKING,), "a host without a required tool", _BUILD),
    Rule(toolkit_parts.without_nvrtc, (toolkit_parts.NVRTC,), "a toolkit without the NVRTC header", _BUILD),
    Rule(whole_toolkit.without_parts, (whole_toolkit.PARTS,), "a system toolkit with missing parts", _BUILD),
    Rule(toolkit_parts.without_nvcc, (toolkit_parts.NVCC,), "a toolkit without a compiler", _BUILD),
    Rule(compiler.no_compiler, (compiler.NONE,), "no C++ compiler", _BUILD),
    Rule(compiler.too_new, (compiler.TOO_NEW,), "a compiler that nvcc rejects", _BUILD),
    Rule(compiler_breaks.breaks_nvcc, (compiler_breaks.BREAKS,), "a compiler that breaks nvcc", _BUILD),
    Rule(compiler_breaks.breaks_pytorch, (compiler_breaks.PYTORCH,), "a compiler that PyTorch fails with", _BUILD),
    Rule(compiler.too_old, (compiler.TOO_OLD,), "a compiler that is too old", _BUILD),
    Rule(compiler.msvc, (compiler.TOO_NEW, compiler.TOO_OLD), "an unsupported Visual C++", _BUILD),
    Rule(compiler.several, (compiler.SEVERAL,), "several C++ compilers", _BUILD),
    Rule(libc.glibc_headers, (libc.HEADERS,), "a glibc that breaks the toolkit's headers", _BUILD),
    Rule(libc.glibc_too_old, (libc.TOO_OLD,), "a glibc that is too old", _BOTH),
    Rule(libc.libstdcxx_too_old, (libc.LIBSTDCXX,), "a libstdc++ older than the g++", _RUN),
    Rule(sysroot.other_origin, (sysroot.ORIGINS,), "a compiler and a sysroot from different origins", _BUILD),
    Rule(pytorch.cuda_too_old, (pytorch.CUDA,), "a CUDA that PyTorch rejects", _BUILD),
    Rule(tried.cuda_tried, (tried.TRIED,), "a CUDA that PyTorch fails with", _BUILD),
    Rule(pytorch.python, (pytorch.PYTHON,), "a Python that PyTorch rejects", _BUILD),
    Rule(python_headers.without_headers, (python_headers.HEADERS,), "a Python without headers", _BUILD),
    Rule(tried.driver_tried, (tried.DRIVER,), "a driver that PyTorch fails with", _RUN),
    Rule(python_headers.without_python, (python_headers.NONE,), "a Python that is not to be had", _BUILD),
    Rule(pytorch.cmake, (pytorch.CMAKE,), "a CMake that PyTorch can't use", _BUILD),
    Rule(pytorch.other_revision, (pytorch.REVISION,), "a revision outside the target's range", _BUILD),
    Rule(pytorch.unlisted, (pytorch.UNLISTED,), "a revision without a row of facts", _BUILD),
    Rule(checkout.submodules, (checkout.SUBMODULES,), "missing submodules", _BUILD),
    Rule(checkout.stale_build, (checkout.STALE,), "a stale build folder", _BUILD),
    Rule(libraries.library_of_other_revision, (libraries.REVISION,), "a library of another PyTorch era", _BUILD),
    Rule(era.cxx_standard, (era.STANDARD,), "a C++ standard that nvcc does not support", _BUILD),
    Rule(era.abi, (era.ABI,), "the libstdc++ ABI", _BUILD),
    Rule(era.build_backend, (era.BACKEND,), "a missing build backend", _BUILD),
    Rule(resources.memory, (resources.MEMORY,), "too little memory", _BUILD),
    Rule(resources.small_disk, (resources.DISK,), "too little disk space", _BOTH),
    Rule(resources.network_disk, (resources.NETWORK,), "a network file system", _BOTH),
    Rule(resources.ptrace, (resources.PTRACE,), "a debugger without permission to attach", _RUN),
    Rule(from_machine.platform, (from_machine.PLATFORM,), "a platform outside the target's list", _BOTH),
)
