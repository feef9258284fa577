"""Derive the variables that builds of PyTorch read from the toolchain, the host, the packages and the manifest."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tenv.activation.changes import Action, Activation, Change
from tenv.activation.conda_scripts import Effect, decide
from tenv.core.dataclass import dataclass
from tenv.core.prefix import CONSTRAINT, TOOLS
from tenv.host.installed_torch import InstalledTorch
from tenv.host.interface import Fact, Missing
from tenv.host.machine import BuildResources
from tenv.targets.manifest import Manifest
from tenv.targets.variable_requests import DERIVED, separator_of
from tenv.toolchain.discover import Toolchain

_GIB = 1 << 30

CUDA_JOB_BYTES = 4.5 * _GIB
"""Memory that the heaviest CUDA files of PyTorch need to compile (FlashAttention; pytorch/pytorch#124018)."""

CPP_JOB_BYTES = 2 * _GIB
"""Memory for the heaviest C++ files of PyTorch: tenv's estimate, not a figure from PyTorch."""


def jobs(machine: BuildResources, *, cuda: bool) -> tuple[int, str]:
    """Return how many compile jobs fit the host at once, with the reason."""
    cores = machine.cores
    each = CUDA_JOB_BYTES if cuda else CPP_JOB_BYTES
    files = "the heaviest CUDA files" if cuda else "the heaviest C++ files"
    if isinstance(machine.memory, Missing):
        return cores.value, f"{cores.value} cores ({cores.origin}); the memory is unknown: {machine.memory.reason}"
    fit = max(1, int(machine.memory.value / each))
    why = (
        f"{cores.value} cores ({cores.origin}), {machine.memory.value / _GIB:.1f} GiB of memory "
        f"({machine.memory.origin}) at {each / _GIB:g} GiB for {files}"
    )
    return min(cores.value, fit), why


@dataclass(frozen=True, slots=True)
class Archs:
    """GPU architectures to compile for."""

    names: tuple[str, ...]
    """Such as ``("8.0", "9.0", "12.0+PTX")``."""
    reason: str
    """Why they are listed."""


def derive(
    manifest: Manifest,
    toolchain: Toolchain,
    machine: BuildResources,
    archs: Archs | None = None,
    effects: Sequence[Effect] = (),
    home: str = "",
    *,
    torch: InstalledTorch | None = None,
) -> Activation:
    """Return the changes of an activation: for packages and the toolchain first, then the manifest's.

    Args:
        manifest: The manifest for this platform.
        toolchain: The tools and libraries in the prefix.
        machine: The resources of a build.
        archs: The architectures to compile for; None to leave them to PyTorch, which detects the GPUs.
        effects: The effects of the conda packages' activation scripts.
        home: The user's home folder, which values of the manifest may use.
        torch: The torch of the environment that the toolchain is beside; None for a toolchain with its own Python.

    Raises:
        ManifestError: A value of the manifest uses a variable that is not set.
    """
    found = _beside(manifest, toolchain, machine, torch) if torch else _derived(manifest, toolchain, machine)
    changes = {change.name: change for change in found}
    kept, left_out = _of_packages(effects, changes)
    changes |= kept
    if archs and toolchain.nvcc:
        value = ";".join(archs.names)
        changes["TORCH_CUDA_ARCH_LIST"] = Change("TORCH_CUDA_ARCH_LIST", Action.SET, value, archs.reason)
    elif archs and toolchain.rocm:
        changes["PYTORCH_ROCM_ARCH"] = Change("PYTORCH_ROCM_ARCH", Action.SET, ";".join(archs.names), archs.reason)
    changes |= {name: _beside_own(changes[name]) for name in _FLAGS if name in changes}
    behind = []
    for change in _wanted(manifest, dict(changes), home):
        derived = changes.get(change.name)
        if derived and {derived.action, change.action} == {Action.PREPEND, Action.APPEND}:
            behind.append(change)
        else:
            changes[change.name] = change
    left_out = tuple(change for change in left_out if change.name not in changes)
    steering = {*_STEERING, *manifest.environment} - _LOCATING
    if torch:
        changes = {name: replace(one, default=one.default or name in _COMPILERS) for name, one in changes.items()}
    ordered = (_as_default(one) if one.name in steering else one for one in (*changes.values(), *behind))
    return Activation(manifest.name, toolchain.prefix, tuple(ordered), left_out=left_out)


_STEERING = frozenset(
    {
        *("MAX_JOBS", "NVCC_THREADS", "CMAKE_GENERATOR", "TORCH_CUDA_ARCH_LIST", "CUDAARCHS", "_GLIBCXX_USE_CXX11_ABI"),
        *("PYTORCH_ROCM_ARCH", "USE_ROCM"),
    }
)
"""The variables of tenv and of packages that steer a build, beside the manifest's own."""

_COMPILERS = frozenset({"CC", "CXX", "CUDAHOSTCXX", "NVCC_CCBIN"})
"""The variables beside another environment in which a compiler of the user stays."""

_LOCATING = (DERIVED - _STEERING) | {"PYTHONNOUSERSITE"}
"""The variables that locate the toolchain or keep other files out: a value from elsewhere would mix two toolchains."""


def _as_default(change: Change) -> Change:
    """Return a change that yields to a value of the user, unless its value is a path, which locates something."""
    if change.action is not Action.SET or {"/", "\\"} & {*change.value}:
        return change
    return replace(change, default=True, reason=f"{change.reason}; a value of yours stays")


def _wanted(manifest: Manifest, derived: Mapping[str, Change], home: str) -> Iterator[Change]:
    """Yield the manifest's changes in its order; they override those that tenv derives."""
    values = {name: change.value for name, change in derived.items() if change.action is Action.SET}
    values |= {"HOME": home} if home else {}
    for name, request in manifest.environment.items():
        replaced = derived.get(name)
        value = request.expanded(values)
        line = f", {request.line}" if request.line else ""
        reason = f"set by the manifest of {request.manifest or manifest.name} ([activation.env]{line})"
        change = Change(name, request.action, value, reason)
        if request.action in (Action.PREPEND, Action.APPEND):
            change = _joined(replace(change, separator=separator_of(name)), replaced)
        elif replaced and replaced.action is not Action.UNSET:
            reason += f", instead of `{replaced.value}`, which tenv derives: {replaced.reason}"
            change = replace(change, reason=reason)
        if change.action is Action.SET:
            values[name] = change.value
        yield change


def _joined(change: Change, derived: Change | None) -> Change:
    """Return an addition to a list, combined with tenv's own addition on the same side or its value."""
    if derived is None or derived.action not in (Action.SET, change.action):
        return change
    value = Change(change.name, change.action, change.value, "", change.separator).on(derived.value) or ""
    return replace(derived, value=value, separator=change.separator, reason=f"{change.reason}; {derived.reason}")


_FLAGS = {
    "LDFLAGS": Action.PREPEND,
    "LDFLAGS_LD": Action.PREPEND,
    "NVCC_PREPEND_FLAGS": Action.APPEND,
    "NVCC_APPEND_FLAGS": Action.APPEND,
}
"""Lists of options that users set too, with the side of the environment's own options.

The linker uses the first folder that has a library, nvcc the last `-ccbin`.
"""


def _beside_own(change: Change) -> Change:
    """Return a change of a list of options that keeps the user's options."""
    if change.action is not Action.SET:
        return change
    action = _FLAGS[change.name]
    where = "before" if action is Action.PREPEND else "after"
    reason = f"{change.reason}; it is added {where} your own value"
    return Change(change.name, action, change.value.strip(), reason, " ")


def _of_packages(effects: Sequence[Effect], ours: Mapping[str, Change]) -> tuple[dict[str, Change], tuple[Change, ...]]:
    """Return the kept and the omitted effects of activation scripts; tenv's own changes take precedence."""
    kept: dict[str, Change] = {}
    left_out = []
    for effect in effects:
        decision = decide(effect)
        value = decision.value
        if value is None:
            left_out.append(Change(effect.name, Action.SET, effect.value or "", decision.reason))
        elif effect.before and value.endswith(os.pathsep + effect.before):
            added = value.removesuffix(os.pathsep + effect.before)
            before = ours.get(effect.name)
            if before and before.action is Action.PREPEND:  # after tenv's own folders
                added, reason = f"{before.value}{os.pathsep}{added}", f"{before.reason}; the rest {decision.reason}"
                kept[effect.name] = Change(effect.name, Action.PREPEND, added, reason)
            elif not before:
                kept[effect.name] = Change(effect.name, Action.PREPEND, added, decision.reason)
        elif effect.name not in ours:
            kept[effect.name] = Change(effect.name, Action.SET, value, decision.reason)
    return kept, tuple(left_out)


def _derived(manifest: Manifest, toolchain: Toolchain, machine: BuildResources) -> Iterator[Change]:
    prefix = str(toolchain.prefix)
    yield Change("TENV_TARGET", Action.SET, manifest.name, "names the active environment")
    yield Change("TENV_PREFIX", Action.SET, prefix, "the active environment's folder")
    own = [toolchain.python.parent, *_program_folders(toolchain), *toolchain.programs]
    programs = os.pathsep.join(dict.fromkeys(map(str, own)))
    yield Change("PATH", Action.PREPEND, programs, "the environment's own programs come first")
    yield from _python_changes(toolchain)
    yield Change("PYTHONHOME", Action.UNSET, "", "would make the environment's Python load another Python's library")
    yield from _cuda_changes(toolchain)
    yield from _rocm_changes(toolchain)
    yield from _compiler_changes(toolchain)
    yield from _headers(toolchain)
    folders, searched = prefix, "CMake's find_package searches the environment first"
    if toolchain.rocm and toolchain.rocm != Path("/usr"):
        folders, searched = f"{prefix}{os.pathsep}{toolchain.rocm}", f"{searched}, then ROCm's packages"
    yield Change("CMAKE_PREFIX_PATH", Action.PREPEND, folders, searched)
    if toolchain.ninja:
        yield Change("CMAKE_GENERATOR", Action.SET, "Ninja", "PyTorch builds with Ninja, which is in the environment")
    if toolchain.mkl:
        reason = "oneMKL's own name for its folder" + (
            "" if "mkl" in toolchain.system else "; PyTorch's FindMKL.cmake finds the same folder by CMAKE_PREFIX_PATH"
        )
        yield Change("MKLROOT", Action.SET, str(toolchain.mkl), reason)
        yield Change(
            "INTEL_MKL_DIR", Action.SET, str(toolchain.mkl), "read by PyTorch's FindMKL.cmake, before /opt/intel"
        )
    count, why = jobs(machine, cuda=toolchain.cuda is not None)
    yield Change("MAX_JOBS", Action.SET, str(count), why)
    if os.name == "posix":
        reason = (
            "the C++11 ABI of libstdc++, the only one of PyTorch since 2.7 (pytorch/pytorch#146200) "
            "and the default of GCC since 5.1"
        )
        yield Change("_GLIBCXX_USE_CXX11_ABI", Action.SET, "1", reason)


def _beside(
    manifest: Manifest, toolchain: Toolchain, machine: BuildResources, torch: InstalledTorch
) -> Iterator[Change]:
    """Yield the changes of a toolkit beside another environment, whose Python and variables stay as they are."""
    yield Change("TENV_TARGET", Action.SET, manifest.name, "names the active environment")
    yield Change("TENV_PREFIX", Action.SET, str(toolchain.prefix), "the active environment's folder")
    own = [toolchain.prefix / TOOLS, *_program_folders(toolchain), *toolchain.programs]
    programs = os.pathsep.join(str(folder) for folder in dict.fromkeys(own) if folder != toolchain.prefix / "bin")
    yield Change("PATH", Action.PREPEND, programs, "CMake, Ninja and nvcc come first; no Python is among them")
    yield from _cuda_changes(toolchain)
    yield from _compiler_changes(toolchain)
    yield from _headers(replace(toolchain, headers=()))
    if toolchain.ninja:
        yield Change("CMAKE_GENERATOR", Action.SET, "Ninja", "builds with CMake take the Ninja of the environment")
    count, why = jobs(machine, cuda=toolchain.cuda is not None)
    yield Change("MAX_JOBS", Action.SET, str(count), why)
    if toolchain.cuda:
        yield _nvcc_threads(machine, count)
    if isinstance(torch.cxx11_abi, Fact):
        reason = f"the C++ ABI of torch {torch.label} ({torch.cxx11_abi.origin})"
        yield Change("_GLIBCXX_USE_CXX11_ABI", Action.SET, str(int(torch.cxx11_abi.value)), reason)


_MOST_THREADS = 4
"""The threads of nvcc that flash-attention, causal-conv1d and mamba ask for where NVCC_THREADS is not set."""


def _nvcc_threads(machine: BuildResources, count: int) -> Change:
    """Return the threads of each nvcc: each compiles for one architecture, and takes the memory of a job."""
    fit, known = 1, "the memory is unknown"
    if not isinstance(machine.memory, Missing):
        fit = min(_MOST_THREADS, max(1, int(machine.memory.value / CUDA_JOB_BYTES / count)))
        known = f"{machine.memory.value / _GIB:.1f} GiB of memory for {count} jobs at {CUDA_JOB_BYTES / _GIB:g} GiB"
    reason = f"{known} and thread; setup.py of flash-attention and others passes it to nvcc as --threads"
    return Change("NVCC_THREADS", Action.SET, str(fit), reason)


def _python_changes(toolchain: Toolchain) -> Iterator[Change]:
    prefix = str(toolchain.prefix)
    if not re.search(r"\s", prefix):  # uv splits the variable at blanks
        reason = "uv keeps a torch that `tenv build` made, as the environment's pip.conf does for pip; empty until then"
        file = str(toolchain.prefix / CONSTRAINT)
        yield Change("UV_CONSTRAINT", Action.PREPEND, file, reason, " ")
    if toolchain.conda:
        reason = "names the environment to uv, to CMake's FindPython and to the activation scripts of conda packages"
        yield Change("CONDA_PREFIX", Action.SET, prefix, reason)
    if toolchain.conda and not toolchain.virtual:
        reason = "packages in ~/.local would replace locked ones; the Python of a virtual environment omits them"
        yield Change("PYTHONNOUSERSITE", Action.SET, "1", reason)
    if toolchain.virtual or not toolchain.conda:
        yield Change("VIRTUAL_ENV", Action.SET, prefix, "pip and uv install into the active environment")
    else:
        reason = "the environment's Python is its own; pip and uv would install into the virtual environment named here"
        yield Change("VIRTUAL_ENV", Action.UNSET, "", reason)


_SYSTEM_PROGRAMS = ("/usr/bin", "/bin", "/usr/local/bin")
"""Folders of every PATH; put in front, they would hide the user's earlier folders."""


def _program_folders(toolchain: Toolchain) -> Iterator[Path]:
    roots = (toolchain.rocm, toolchain.mpi)
    folders = (toolchain.nvcc.parent if toolchain.nvcc else None, *(root / "bin" for root in roots if root))
    yield from (folder for folder in folders if folder and str(folder) not in _SYSTEM_PROGRAMS)


def _compiler_changes(toolchain: Toolchain) -> Iterator[Change]:
    of_machine = "of this host, as [system] requires"
    whose = of_machine if {"gcc", "clang", "msvc"} & {*toolchain.system} else "of the environment"
    if toolchain.cc:
        yield Change("CC", Action.SET, str(toolchain.cc), f"the C compiler {whose}")
    if toolchain.cxx:
        yield Change("CXX", Action.SET, str(toolchain.cxx), f"the C++ compiler {whose}")
    if toolchain.cxx and toolchain.nvcc:
        reason = "the host compiler of nvcc, for {}: the same as CXX"
        yield Change("CUDAHOSTCXX", Action.SET, str(toolchain.cxx), reason.format("CMake"))
        yield Change("NVCC_CCBIN", Action.SET, str(toolchain.cxx), reason.format("nvcc itself"))
        if " " not in str(toolchain.cxx):  # nvcc treats a comma as the end of the option
            flags = f"-ccbin={toolchain.cxx}"
            yield Change(
                "NVCC_PREPEND_FLAGS", Action.SET, flags, reason.format("an nvcc without support for NVCC_CCBIN (11.8)")
            )
    if toolchain.mpi:
        yield Change("MPI_HOME", Action.SET, str(toolchain.mpi), f"the MPI {of_machine}; read by CMake's FindMPI")


def _run_path(toolchain: Toolchain) -> Iterator[Change]:
    """Yield the change that makes programs linked by nvcc find the environment's libraries at run time.

    nvcc passes `-Xlinker` only to the host's linker. CMake and PyTorch link with the host compiler, so their programs
    do not change. The loader itself searches the folders of a system toolkit.
    """
    if os.name != "posix" or toolchain.cuda is None or "cuda-toolkit" in toolchain.system:
        return
    # The flat toolkits of the nvidia channel are in the prefix itself, which has no lib64.
    folder = toolchain.cuda / ("lib" if toolchain.cuda == toolchain.prefix else "lib64")
    if re.fullmatch(r"[\w@%+=:./~-]+", str(folder)):  # nvcc splits its variables at blanks and commas
        reason = "programs linked by nvcc find the environment's CUDA libraries at run time (RUNPATH)"
        yield Change("NVCC_APPEND_FLAGS", Action.SET, f"-Xlinker=-rpath -Xlinker={folder}", reason)


_SYSTEM_HEADERS = ("/usr/include", "/usr/local/include")


def _headers(toolchain: Toolchain) -> Iterator[Change]:
    """Yield the changes by which a compiler finds the environment's headers outside CMake.

    GCC and clang look into these folders after every -I and -isystem (GCC's manual, Environment Variables Affecting
    GCC), so they hide no header of a source tree. nvcc hands them to the host's compiler.
    """
    if os.name != "posix":
        return
    roots = (toolchain.cuda, toolchain.cudnn, toolchain.cusparselt, toolchain.nccl, toolchain.mkl, toolchain.magma)
    named = [root / "include" for root in roots if root]
    folders = [str(folder) for folder in (*named, *toolchain.headers) if str(folder) not in _SYSTEM_HEADERS]
    value = os.pathsep.join(dict.fromkeys(folders))
    reason = "{} of the environment's libraries are found outside CMake too; every -I and -isystem comes before them"
    for name, language in (("C_INCLUDE_PATH", "C"), ("CPLUS_INCLUDE_PATH", "C++")) if value else ():
        yield Change(name, Action.PREPEND, value, reason.format(f"headers for {language}"))


def _rocm_changes(toolchain: Toolchain) -> Iterator[Change]:
    if toolchain.rocm is None:
        return
    root, release = str(toolchain.rocm), f"ROCm {toolchain.rocm_version} of this machine"
    yield Change("ROCM_PATH", Action.SET, root, f"{release}; read by PyTorch's LoadHIP.cmake, before /opt/rocm")
    yield Change("ROCM_HOME", Action.SET, root, "the same for torch.utils.cpp_extension")
    yield Change("HIP_PATH", Action.SET, root, "the same for hipcc and hipconfig")
    if toolchain.hip_clang:
        reason = "the folder of HIP's clang++; read by hipcc and LoadHIP.cmake"
        yield Change("HIP_CLANG_PATH", Action.SET, str(toolchain.hip_clang), reason)
    if toolchain.bitcode:
        reason = "HIP's device libraries, which a clang outside AMD's folder does not find; read by hipcc and PyTorch"
        yield Change("HIP_DEVICE_LIB_PATH", Action.SET, str(toolchain.bitcode), reason)
    yield Change("USE_ROCM", Action.SET, "1", f"{release}, as [system] requires")
    if toolchain.cuda is None:
        yield Change("USE_CUDA", Action.SET, "0", "PyTorch takes a CUDA that it finds, beside ROCm too")


def _cuda_changes(toolchain: Toolchain) -> Iterator[Change]:
    if toolchain.cuda:
        root = str(toolchain.cuda)
        version = f"CUDA {toolchain.cuda_version}" if toolchain.cuda_version else "CUDA"
        version += " of this machine" if "cuda-toolkit" in toolchain.system else ""
        yield Change(
            "CUDA_HOME", Action.SET, root, f"{version}; read by PyTorch's setup.py and torch.utils.cpp_extension"
        )
        yield Change("CUDA_PATH", Action.SET, root, "the same for CMake's FindCUDA and for Windows")
        reason = "the same for CMake's find_package({}), which would mix in the libraries of another toolkit named here"
        yield Change("CUDAToolkit_ROOT", Action.SET, root, reason.format("CUDAToolkit"))
        yield Change("CUDA_ROOT", Action.SET, root, reason.format("CUDA"))
    if toolchain.nvcc:
        yield Change("CUDACXX", Action.SET, str(toolchain.nvcc), "the compiler of CMake's CUDA language")
        yield from _run_path(toolchain)
    libraries = (
        ("CUDNN_ROOT", toolchain.cudnn, "FindCUDNN.cmake", "cuDNN"),
        ("CUSPARSELT_ROOT", toolchain.cusparselt, "FindCUSPARSELT.cmake", "cuSPARSELt"),
        ("NCCL_ROOT", toolchain.nccl, "FindNCCL.cmake", "NCCL"),
        ("MAGMA_HOME", toolchain.magma, "FindMAGMA.cmake", "MAGMA"),
    )
    for name, folder, module, library in libraries:
        if folder:
            whose = "this machine" if name.removesuffix("_ROOT").lower() in toolchain.system else "the environment"
            yield Change(name, Action.SET, str(folder), f"{library} of {whose}; read by PyTorch's {module}")
    if toolchain.nvtx:
        reason = "NvToolsExt of the environment; read by PyTorch's cuda.cmake on Windows, up to 2.6"
        yield Change("NVTOOLSEXT_PATH", Action.SET, str(toolchain.nvtx), reason)
    if toolchain.compat:
        reason = "cuda-compat's libcuda.so.1: the driver is too old for this CUDA, and the GPUs support forward "
        "compatibility"
        yield Change("LD_LIBRARY_PATH", Action.PREPEND, str(toolchain.compat), reason)
