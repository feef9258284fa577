"""Every rule that judges a target on a machine, in the order in which a person reads what they find."""

from collections.abc import Iterator

from tenv.checks.rules import (
    compiler,
    driver_library,
    era,
    from_machine,
    gpu,
    libc,
    libraries,
    pytorch,
    resources,
    sysroot,
    toolkit,
    toolkit_in_sight,
    toolkit_parts,
)
from tenv.checks.rules.common import only
from tenv.checks.rules.driver_rules import driver_rule, override_rule
from tenv.checks.rules.interface import Case, Finding, Rule, Scope

__all__ = ["RULES"]


def _lock(case: Case) -> Iterator[Finding]:
    if case.lock is not None:
        yield from toolkit.check_lock(case.lock)


RULES: tuple[Rule, ...] = (
    Rule("TE101", "a driver that can't be read", Scope.RUN, only("TE101", driver_rule)),
    Rule("TE102", "minor-version compatibility", Scope.RUN, only("TE102", driver_rule)),
    Rule("TE103", "a driver that is too old", Scope.RUN, only("TE103", driver_rule)),
    Rule("TE104", "a CUDA that the table of drivers does not know", Scope.RUN, only("TE104", driver_rule)),
    Rule("TE105", "forward compatibility", Scope.RUN, only("TE105", driver_rule)),
    Rule(driver_library.OLDER, "a libcuda that does not fit the driver", Scope.RUN, driver_library.older_library),
    Rule("TE107", "a CONDA_OVERRIDE_CUDA that says nothing", Scope.BOTH, override_rule),
    Rule(gpu.TOO_OLD, "a GPU that the toolkit has dropped", Scope.RUN, gpu.gpu_too_old),
    Rule(gpu.TOO_NEW, "a GPU that is newer than the toolkit", Scope.RUN, gpu.gpu_too_new),
    Rule(gpu.MIXED, "GPUs of several compute capabilities", Scope.RUN, gpu.gpu_mixed),
    Rule(gpu.DROPPED, "a GPU that PyTorch has dropped", Scope.RUN, gpu.gpu_dropped),
    Rule(toolkit.MIXED_RELEASES, "packages of another release", Scope.BOTH, only(toolkit.MIXED_RELEASES, _lock)),
    Rule(toolkit.PLACEHOLDER, "packages that hold nothing", Scope.BOTH, only(toolkit.PLACEHOLDER, _lock)),
    Rule(toolkit.WRONG_MAJOR, "packages of another CUDA major", Scope.BOTH, only(toolkit.WRONG_MAJOR, _lock)),
    Rule(toolkit_in_sight.TWO_TOOLKITS, "two toolkits in sight", Scope.BUILD, toolkit_in_sight.two_toolkits),
    Rule(libraries.LIBRARY, "a library of another CUDA", Scope.BOTH, libraries.library_of_other_cuda),
    Rule(toolkit.MIXED_HALVES, "headers of another release", Scope.BOTH, only(toolkit.MIXED_HALVES, _lock)),
    Rule(libraries.MAGMA, "a MAGMA of another CUDA", Scope.BUILD, libraries.magma_of_other_cuda),
    Rule(toolkit_in_sight.CONTRADICTORY, "a toolkit that is not whole", Scope.BUILD, toolkit_in_sight.contradictory),
    Rule(from_machine.LACKING, "a machine that lacks what is taken from it", Scope.BUILD, from_machine.lacking),
    Rule(toolkit_parts.NVRTC, "a toolkit without NVRTC's header", Scope.BUILD, toolkit_parts.without_nvrtc),
    Rule(compiler.NONE, "no C++ compiler", Scope.BUILD, compiler.no_compiler),
    Rule(compiler.TOO_NEW, "a compiler that nvcc refuses", Scope.BUILD, compiler.too_new),
    Rule(compiler.TOO_OLD, "a compiler that is too old", Scope.BUILD, compiler.too_old),
    Rule(compiler.SEVERAL, "several C++ compilers", Scope.BUILD, compiler.several),
    Rule(libc.HEADERS, "a glibc that the toolkit can't compile with", Scope.BUILD, libc.glibc_headers),
    Rule(libc.TOO_OLD, "a glibc that is too old", Scope.BOTH, libc.glibc_too_old),
    Rule(libc.LIBSTDCXX, "a libstdc++ that is older than the g++", Scope.RUN, libc.libstdcxx_too_old),
    Rule(sysroot.ORIGINS, "a compiler and a sysroot of two origins", Scope.BUILD, sysroot.other_origin),
    Rule(pytorch.CUDA, "a CUDA that PyTorch refuses", Scope.BUILD, pytorch.cuda_too_old),
    Rule(pytorch.PYTHON, "a Python that PyTorch refuses", Scope.BUILD, pytorch.python),
    Rule(pytorch.CMAKE, "a CMake that PyTorch can't use", Scope.BUILD, pytorch.cmake),
    Rule(pytorch.REVISION, "a revision that the target is not for", Scope.BUILD, pytorch.other_revision),
    Rule(pytorch.UNLISTED, "a revision that the table does not have", Scope.BUILD, pytorch.unlisted),
    Rule(libraries.REVISION, "a library of another time", Scope.BUILD, libraries.library_of_other_revision),
    Rule(era.STANDARD, "a C++ standard that nvcc does not know", Scope.BUILD, era.cxx_standard),
    Rule(era.ABI, "the ABI of libstdc++", Scope.BUILD, era.abi),
    Rule(era.BACKEND, "a build system that is not there", Scope.BUILD, era.build_backend),
    Rule(resources.MEMORY, "little memory", Scope.BUILD, resources.memory),
    Rule(resources.DISK, "a disk that is too small", Scope.BOTH, resources.small_disk),
    Rule(resources.NETWORK, "a network file system", Scope.BOTH, resources.network_disk),
    Rule(resources.PTRACE, "a debugger that may not attach", Scope.RUN, resources.ptrace),
    Rule(from_machine.PLATFORM, "a platform that the target is not for", Scope.BOTH, from_machine.platform),
)
