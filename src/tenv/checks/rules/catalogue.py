"""Every rule that judges a target on a machine, in the order in which people read what they find.

A new rule is a function from a `Case` to its findings and a row here: the codes that it may yield, what it is about,
and which verdict its errors decide. ``docs/check.md`` lists the rows.
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
    Rule(driver_rules.override_rule, (driver_rules.USELESS,), "a CONDA_OVERRIDE_CUDA that says nothing", _BOTH),
    Rule(gpu.gpu_mixed, (gpu.MIXED,), "GPUs of several compute capabilities", _RUN),
    Rule(gpu.gpu_dropped, (gpu.DROPPED,), "a GPU that PyTorch has dropped", _RUN),
    Rule(toolkit.mixed_releases, (toolkit.MIXED_RELEASES,), "packages of another release", _BOTH),
    Rule(toolkit.placeholders, (toolkit.PLACEHOLDER,), "packages that hold nothing", _BOTH),
    Rule(toolkit.wrong_major, (toolkit.WRONG_MAJOR,), "packages of another CUDA major", _BOTH),
    Rule(toolkit_in_sight.two_toolkits, (toolkit_in_sight.TWO_TOOLKITS,), "two toolkits in sight", _BUILD),
    Rule(libraries.library_of_other_cuda, (libraries.LIBRARY,), "a library of another CUDA", _BOTH),
    Rule(toolkit.mixed_halves, (toolkit.MIXED_HALVES,), "headers of another release", _BOTH),
    Rule(libraries.magma_of_other_cuda, (libraries.MAGMA,), "a MAGMA of another CUDA", _BUILD),
    Rule(toolkit_in_sight.contradictory, (toolkit_in_sight.CONTRADICTORY,), "a toolkit that is not whole", _BUILD),
    Rule(from_machine.lacking, (from_machine.LACKING,), "a machine that lacks what is taken from it", _BUILD),
    Rule(toolkit_parts.without_nvrtc, (toolkit_parts.NVRTC,), "a toolkit without NVRTC's header", _BUILD),
    Rule(whole_toolkit.without_parts, (whole_toolkit.PARTS,), "a machine's toolkit with parts missing", _BUILD),
    Rule(compiler.no_compiler, (compiler.NONE,), "no C++ compiler", _BUILD),
    Rule(compiler.too_new, (compiler.TOO_NEW,), "a compiler that nvcc refuses", _BUILD),
    Rule(compiler_breaks.breaks_nvcc, (compiler_breaks.BREAKS,), "a compiler that nvcc fails with", _BUILD),
    Rule(compiler.too_old, (compiler.TOO_OLD,), "a compiler that is too old", _BUILD),
    Rule(compiler.msvc, (compiler.TOO_NEW, compiler.TOO_OLD), "a Visual C++ that is too new or too old", _BUILD),
    Rule(compiler.several, (compiler.SEVERAL,), "several C++ compilers", _BUILD),
    Rule(libc.glibc_headers, (libc.HEADERS,), "a glibc that the toolkit can't compile with", _BUILD),
    Rule(libc.glibc_too_old, (libc.TOO_OLD,), "a glibc that is too old", _BOTH),
    Rule(libc.libstdcxx_too_old, (libc.LIBSTDCXX,), "a libstdc++ that is older than the g++", _RUN),
    Rule(sysroot.other_origin, (sysroot.ORIGINS,), "a compiler and a sysroot of two origins", _BUILD),
    Rule(pytorch.cuda_too_old, (pytorch.CUDA,), "a CUDA that PyTorch refuses", _BUILD),
    Rule(tried.cuda_tried, (tried.TRIED,), "a CUDA that PyTorch fails with", _BUILD),
    Rule(pytorch.python, (pytorch.PYTHON,), "a Python that PyTorch refuses", _BUILD),
    Rule(python_headers.without_headers, (python_headers.HEADERS,), "a Python without its headers", _BUILD),
    Rule(pytorch.cmake, (pytorch.CMAKE,), "a CMake that PyTorch can't use", _BUILD),
    Rule(pytorch.other_revision, (pytorch.REVISION,), "a revision that the target is not for", _BUILD),
    Rule(pytorch.unlisted, (pytorch.UNLISTED,), "a revision that the table does not have", _BUILD),
    Rule(checkout.submodules, (checkout.SUBMODULES,), "submodules that are not there", _BUILD),
    Rule(checkout.stale_build, (checkout.STALE,), "a build folder of another build", _BUILD),
    Rule(libraries.library_of_other_revision, (libraries.REVISION,), "a library of another time", _BUILD),
    Rule(era.cxx_standard, (era.STANDARD,), "a C++ standard that nvcc does not know", _BUILD),
    Rule(era.abi, (era.ABI,), "the ABI of libstdc++", _BUILD),
    Rule(era.build_backend, (era.BACKEND,), "a build system that is not there", _BUILD),
    Rule(resources.memory, (resources.MEMORY,), "little memory", _BUILD),
    Rule(resources.small_disk, (resources.DISK,), "a disk that is too small", _BOTH),
    Rule(resources.network_disk, (resources.NETWORK,), "a network file system", _BOTH),
    Rule(resources.ptrace, (resources.PTRACE,), "a debugger that may not attach", _RUN),
    Rule(from_machine.platform, (from_machine.PLATFORM,), "a platform that the target is not for", _BOTH),
)
