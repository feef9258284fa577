"""What several rules ask of a case."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tenv.checks.rules.interface import Case
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.tables import Facts
from tenv.host.choice import GccPair, Selection, choose_gcc, choose_toolkit
from tenv.host.interface import Missing
from tenv.host.report import Compiler, FoundBy, Gpu, HostReport, Lead, Toolkit
from tenv.targets.manifest import Manifest

if TYPE_CHECKING:
    from tenv.facts.cuda_gpu_arch import GpuArchTable, GpuClass
    from tenv.locks.lock import CondaPackage, Wheel

__all__ = [
    "KnownGpu",
    "asked_doubt",
    "brought_compiler",
    "c_compiler",
    "chosen_gcc",
    "chosen_toolkit",
    "compiled_for",
    "cuda_of",
    "cuda_on",
    "doubt",
    "gcc_limit",
    "identify",
    "installed",
    "known_gpus",
    "locked",
    "locked_conda",
    "on_windows",
    "own_compiler",
    "taken_compiler",
    "takes_toolkit",
    "toolkit_on",
]

_COMPILER_PACKAGES = ("cxx-compiler", "compilers", "gxx", "gxx_linux-64", "gxx_linux-aarch64")
_GXX_PACKAGES = ("gxx_linux-64", "gxx_linux-aarch64", "gxx_impl_linux-64", "gxx_impl_linux-aarch64")
"""Those that are numbered with the GCC that they are; the former depend on the latter."""


@dataclass(frozen=True, slots=True)
class KnownGpu:
    """A GPU of the machine with what the tables add to it.

    Attributes:
        name: Its name; its PCI id or address where nothing gives it one.
        capability: Its compute capability; None when neither the driver nor a table tells.
        kind: What it is sold as; None when the tables do not know it.
        origin: Where the compute capability was read.
        basis: How well the table knows it; None where the driver told.
    """

    name: str
    capability: Version | None
    kind: "GpuClass | None"
    origin: str
    basis: Basis | None


def doubt(*bases: Basis | None) -> str:
    """Return what a message has to add about rows that are not confirmed, with a space before it, or nothing."""
    said = dict.fromkeys(basis.doubt.rstrip(".") for basis in bases if basis is not None and basis.doubt)
    return f" ({'; '.join(said)})" if said else ""


def asked_doubt(case: Case) -> str:
    """Return what a message has to add about what a release asks for, where no checkout was read."""
    if case.source is None or case.source.root is not None:
        return ""
    row = case.facts.pytorch_build.release(case.source.version.value)
    return doubt(row.basis) if row else ""


def cuda_of(case: Case) -> Version | None:
    """Return the CUDA release that the target is built with, None for a target without CUDA."""
    return cuda_on(case.manifest, case.host)


def cuda_on(manifest: Manifest, host: HostReport) -> Version | None:
    """Return the CUDA release that a target is built with on a machine, None for a target without CUDA.

    A target that takes the machine's toolkit, whatever it is, is built with the release of that one.
    """
    choice = toolkit_on(manifest, host) if manifest.requirements.cuda is None else None
    taken = choice.taken.version if choice and choice.taken else None
    return manifest.requirements.cuda or (Version(taken.major_minor) if taken else None)


def takes_toolkit(manifest: Manifest) -> bool:
    """Tell whether the machine's toolkit decides which CUDA a target is built with on the manifest's platform."""
    return "cuda-toolkit" in manifest.system and manifest.requirements.cuda is None


def chosen_toolkit(case: Case) -> Selection[Toolkit] | None:
    """Return which toolkit of the machine the target takes; None where it takes none, or none could be looked for."""
    return toolkit_on(case.manifest, case.host)


def toolkit_on(manifest: Manifest, host: HostReport) -> Selection[Toolkit] | None:
    """Return which toolkit of a machine a target takes; None where it takes none, or none could be looked for."""
    accepted = manifest.system.get("cuda-toolkit")
    if accepted is None or isinstance(host.toolkits, Missing):
        return None
    return choose_toolkit(host.toolkits.value, accepted)


def chosen_gcc(case: Case) -> Selection[GccPair] | None:
    """Return which gcc of the machine the target takes; None where it takes none, or none could be looked for."""
    accepted = case.manifest.system.get("gcc")
    if accepted is None or isinstance(case.host.compilers, Missing):
        return None
    return choose_gcc(case.host.compilers.value, accepted, gcc_limit(case))


def gcc_limit(case: Case) -> int | None:
    """Return the newest major version of GCC that nvcc of the machine's toolkit takes, None where none is taken."""
    toolkit = chosen_toolkit(case)
    release = toolkit.taken.version if toolkit and toolkit.taken else None
    limits = case.facts.cuda_host_compiler.limits(release) if release else None
    return limits.gcc_max if limits else None


def on_windows(case: Case) -> bool:
    """Tell whether the target is looked at for Windows itself."""
    return case.platform.startswith("win")


def locked(case: Case, *names: str) -> "Iterator[Wheel]":
    """Yield the wheels of these names that the lock has for the platform."""
    if case.lock is not None:
        yield from (wheel for wheel in case.lock.wheels.get(case.platform, ()) if wheel.name in names)


def locked_conda(case: Case, *names: str) -> "Iterator[CondaPackage]":
    """Yield the conda packages of these names that the lock has for the platform, in the order of the names."""
    packages = case.lock.conda.get(case.platform, ()) if case.lock is not None else ()
    for name in names:
        yield from (package for package in packages if package.name == name)


def own_compiler(case: Case) -> bool:
    """Tell whether the target brings a C++ compiler with a C library to compile against, so that the host's rest."""
    return any(name in case.manifest.dependencies for name in _COMPILER_PACKAGES)


def brought_compiler(case: Case) -> Compiler | None:
    """Return the g++ that the target brings by its lock; None where it brings none, or is not locked."""
    for package in locked_conda(case, *_GXX_PACKAGES) if own_compiler(case) else ():
        if version := Version.find(package.version):
            found_by = (FoundBy(Lead.LOCK, f"the lock of `{case.manifest.name}`"),)
            return Compiler("g++", package.file, version, default=True, found_by=found_by)
    return None


def taken_compiler(case: Case, cuda: bool = False) -> Compiler | None:
    """Return the C++ compiler that a build takes, None where none is known.

    Args:
        case: The case.
        cuda: Whether nvcc's host compiler is meant: CUDAHOSTCXX, nvcc's own variables and the gcc on PATH decide.
    """
    if own_compiler(case):
        return brought_compiler(case)
    if isinstance(case.host.compilers, Missing):
        return None
    kinds = ("msvc",) if on_windows(case) else ("g++", "clang++")
    found = [compiler for compiler in case.host.compilers.value if compiler.kind in kinds]
    if choice := chosen_gcc(case):  # where none fits, that is told (TE309), and no other is taken
        pair = choice.taken
        # On Windows none: a g++ that a target takes on Linux is not what a build takes there.
        return next((compiler for compiler in found if compiler.path == pair.gxx), None) if pair else None
    taken = next((compiler for compiler in found if compiler.default), None)
    return _of_nvcc(case.host.compilers.value, taken) if cuda and not on_windows(case) else taken


def _of_nvcc(compilers: Iterable[Compiler], taken: Compiler | None) -> Compiler | None:
    """Return the compiler that nvcc takes beside the C++ compiler that the build takes.

    CMake hands CUDAHOSTCXX to nvcc, and PyTorch a clang that compiles its C++ (cmake/public/cuda.cmake). Otherwise nvcc
    looks for itself; what it takes is called gcc, and stands for the g++ of the same version.
    """
    found = tuple(compilers)
    cxx = [compiler for compiler in found if compiler.kind in ("g++", "clang++")]
    if named := [compiler for compiler in cxx if compiler.led_by(Lead.CUDAHOSTCXX)]:
        return named[0]
    own = next((compiler for compiler in found if compiler.nvcc), None)
    if own is None or (taken and taken.kind == "clang++" and not own.led_by(Lead.NVCC)):
        return taken
    kind = own.kind if own.kind.endswith("++") else {"gcc": "g++", "clang": "clang++"}.get(own.kind, own.kind)
    same = [compiler for compiler in cxx if compiler.kind == kind and compiler.version == own.version]
    return max(same, key=lambda compiler: compiler.default, default=replace(own, kind=kind))


def installed(case: Case, kind: str = "g++") -> list[Compiler]:
    """Return every g++ of the machine, or every compiler of another kind."""
    compilers = case.host.compilers
    return [] if isinstance(compilers, Missing) else [found for found in compilers.value if found.kind == kind]


def c_compiler(path: str) -> str:
    """Return the gcc that comes with a g++, or the clang with a clang++, by its path."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{name.replace('clang++', 'clang').replace('g++', 'gcc')}"


def identify(gpu: Gpu, facts: Facts) -> KnownGpu:
    """Return a GPU with what the tables say of its name or its PCI id."""
    from tenv.facts.gpu_names import find_by_id, find_by_name  # late: few ask about GPUs

    named = find_by_name(gpu.name, facts) if gpu.name else None
    listed = find_by_id(gpu.pci_id, facts) if named is None and gpu.pci_id else None
    row = named or listed
    name = gpu.name or (listed.name if listed else "") or gpu.pci_id or gpu.pci_address or "a GPU without a name"
    kind = row.kind if row else None
    if gpu.compute_capability is not None or row is None:
        return KnownGpu(name, gpu.compute_capability, kind, "", None)
    origin = "its name" if named else f"PCI id {gpu.pci_id}"
    return KnownGpu(name, row.capability, kind, origin, row.basis)


def known_gpus(case: Case) -> tuple[KnownGpu, ...]:
    """Return the GPUs of the machine; empty when there is none, or none could be read."""
    if isinstance(case.host.gpus, Missing):
        return ()
    return tuple(identify(gpu, case.facts) for gpu in case.host.gpus.value)


def compiled_for(gpus: Iterable[KnownGpu], cuda: Version, archs: "GpuArchTable | None") -> list[Version]:
    """Return the compute capabilities of GPUs for which nvcc of a CUDA release compiles; all, where it is not known."""
    row = archs.archs(cuda) if archs else None
    found = sorted({gpu.capability for gpu in gpus if gpu.capability is not None})
    return [one for one in found if not (row and (row.has_dropped(one) or row.is_older_than(one)))]
