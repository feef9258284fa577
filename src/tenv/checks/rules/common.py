"""Values of a case that several rules use."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tenv.checks.rules.interface import Case
from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.tables import Facts
from tenv.host.choice import GccPair, Selection, choose_gcc, choose_rocm, choose_toolkit, fitting_gcc
from tenv.host.interface import Fact, Missing
from tenv.host.report import Compiler, FoundBy, Gpu, HostReport, Lead, Rocm, Toolkit
from tenv.targets.manifest import Manifest

if TYPE_CHECKING:
    from tenv.facts.cuda_gpu_arch import GpuArchTable, GpuClass
    from tenv.locks.lock import CondaPackage, Wheel

_COMPILER_PACKAGES = ("cxx-compiler", "compilers", "gxx", "gxx_linux-64", "gxx_linux-aarch64")
_GXX_PACKAGES = ("gxx_linux-64", "gxx_linux-aarch64", "gxx_impl_linux-64", "gxx_impl_linux-aarch64")
"""Packages with the version of their GCC; the former depend on the latter."""


_PLAIN = tuple(f"{folder}/{name}" for name in ("gcc", "g++") for folder in ("/usr/bin", "/usr/local/bin", "/bin"))
"""The gcc that nvcc finds on PATH, and the g++ beside it, in a report that does not mark nvcc's host compiler."""


@dataclass(frozen=True, slots=True)
class KnownGpu:
    """A GPU of the host with values from the tables."""

    name: str
    """Its name; its PCI id or address if it has no name."""
    capability: Version | None
    """Its compute capability; None if neither the driver nor a table has it."""
    kind: "GpuClass | None"
    """Its product class; None if the tables do not have it."""
    origin: str
    """Where the compute capability was read."""
    basis: Basis | None
    """How certain the table's row is; None if the driver reported the value."""


def doubt(*bases: Basis | None) -> str:
    """Return the suffix of a message about unconfirmed rows, with a leading space, or an empty string."""
    doubts = dict.fromkeys(basis.doubt.rstrip(".") for basis in bases if basis is not None and basis.doubt)
    return f" ({'; '.join(doubts)})" if doubts else ""


def asked_doubt(case: Case) -> str:
    """Return the suffix of a message about a release's requirements if no checkout was read."""
    if case.source is None or case.source.root is not None:
        return ""
    row = case.facts.pytorch_build.release(case.source.version.value)
    return doubt(row.basis) if row else ""


def cuda_of(case: Case) -> Version | None:
    """Return the CUDA release that the target is built with, None for a target without CUDA."""
    return cuda_on(case.manifest, case.host)


def cuda_on(manifest: Manifest, host: HostReport) -> Version | None:
    """Return the CUDA release that a target is built with on a host, None for a target without CUDA.

    A target that accepts any toolkit of the host is built with that toolkit's release.
    """
    choice = toolkit_on(manifest, host) if manifest.requirements.cuda is None else None
    taken = choice.taken.version if choice and choice.taken else None
    return manifest.requirements.cuda or (Version(taken.major_minor) if taken else None)


def chosen_toolkit(case: Case) -> Selection[Toolkit] | None:
    """Return the host's toolkit that the case's target uses; None if it uses none or toolkits were not detected."""
    return toolkit_on(case.manifest, case.host)


def toolkit_on(manifest: Manifest, host: HostReport) -> Selection[Toolkit] | None:
    """Return the toolkit of a host that a target uses; None if it uses none or toolkits were not detected."""
    accepted = manifest.system.get("cuda-toolkit")
    if accepted is None or isinstance(host.toolkits, Missing):
        return None
    return choose_toolkit(host.toolkits.value, accepted)


def chosen_rocm(case: Case) -> Selection[Rocm] | None:
    """Return the host's ROCm that the target uses; None if it uses none or no ROCm was detected."""
    accepted = case.manifest.system.get("rocm")
    if accepted is None or isinstance(case.host.rocms, Missing):
        return None
    return choose_rocm(case.host.rocms.value, accepted)


def chosen_gcc(case: Case) -> Selection[GccPair] | None:
    """Return the host's gcc that the target uses; None if it uses none or compilers were not detected."""
    accepted = case.manifest.system.get("gcc")
    if accepted is None or isinstance(case.host.compilers, Missing):
        return None
    return choose_gcc(case.host.compilers.value, accepted, gcc_limit(case))


def gcc_limit(case: Case) -> int | None:
    """Return the newest GCC major that nvcc of the host's toolkit accepts; None if the target uses none."""
    toolkit = chosen_toolkit(case)
    release = toolkit.taken.version if toolkit and toolkit.taken else None
    limits = case.facts.cuda_host_compiler.limits(release) if release else None
    return limits.gcc_max if limits else None


def on_windows(case: Case) -> bool:
    """Return whether the case's platform is Windows itself."""
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
    """Return whether the target brings a C++ compiler and a C library, so that the host's are not used."""
    return any(name in case.manifest.dependencies for name in _COMPILER_PACKAGES)


def brought_compiler(case: Case) -> Compiler | None:
    """Return the g++ in the target's lock; None if it has none or there is no lock."""
    for package in locked_conda(case, *_GXX_PACKAGES) if own_compiler(case) else ():
        if version := Version.find(package.version):
            found_by = (FoundBy(Lead.LOCK, f"the lock of `{case.manifest.name}`"),)
            return Compiler("g++", package.file, version, default=True, found_by=found_by)
    return None


def taken_compiler(case: Case, cuda: bool = False) -> Compiler | None:
    """Return the C++ compiler that a build uses; None if unknown.

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
    if choice := chosen_gcc(case):  # if none fits, TE309 reports it, and no other compiler is used
        pair = choice.taken
        # On Windows none: a build there does not use the g++ that a target uses on Linux.
        return next((compiler for compiler in found if compiler.path == pair.gxx), None) if pair else None
    if pair := _beside(case):
        return next((compiler for compiler in found if compiler.path == pair.gxx), None)
    taken = next((compiler for compiler in found if compiler.default), None)
    return _of_nvcc(case.host.compilers.value, taken) if cuda and not on_windows(case) else taken


def _beside(case: Case) -> GccPair | None:
    """Return the gcc that a toolkit beside another environment takes since nvcc rejects the default compiler."""
    cuda, found = case.manifest.requirements.cuda, case.host.compilers
    limits = case.facts.cuda_host_compiler.limits(cuda) if case.manifest.beside and cuda else None
    return fitting_gcc(found.value, limits.gcc_min, limits.gcc_max) if limits and isinstance(found, Fact) else None


def _of_nvcc(compilers: Iterable[Compiler], taken: Compiler | None) -> Compiler | None:
    """Return nvcc's host compiler, which may differ from the C++ compiler of the build.

    CMake passes CUDAHOSTCXX to nvcc, and PyTorch passes a clang that compiles its C++ (cmake/public/cuda.cmake).
    Otherwise nvcc searches for ``gcc``, which implies the g++ of the same version.
    """
    found = tuple(compilers)
    cxx = [compiler for compiler in found if compiler.kind in ("g++", "clang++")]
    if named := [compiler for compiler in cxx if compiler.led_by(Lead.CUDAHOSTCXX)]:
        return named[0]
    own = next((compiler for compiler in found if compiler.nvcc), None)
    if own is None and taken and taken.led_by(Lead.CXX) and not taken.led_by(Lead.PATH):
        own = next((compiler for compiler in found if compiler.path in _PLAIN and compiler.led_by(Lead.PATH)), None)
    if own is None or (taken and taken.kind == "clang++" and not own.led_by(Lead.NVCC)):
        return taken
    kind = own.kind if own.kind.endswith("++") else {"gcc": "g++", "clang": "clang++"}.get(own.kind, own.kind)
    same = [compiler for compiler in cxx if compiler.kind == kind and compiler.version == own.version]
    return max(same, key=lambda compiler: compiler.default, default=replace(own, kind=kind))


def installed(case: Case, kind: str = "g++") -> list[Compiler]:
    """Return the host's compilers of a kind."""
    compilers = case.host.compilers
    return [] if isinstance(compilers, Missing) else [found for found in compilers.value if found.kind == kind]


def c_compiler(path: str) -> str:
    """Return the path of the gcc next to a g++, or of the clang next to a clang++."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{name.replace('clang++', 'clang').replace('g++', 'gcc')}"


def identify(gpu: Gpu, facts: Facts) -> KnownGpu:
    """Return a GPU with the values that the tables have for its name or its PCI id."""
    from tenv.facts.gpu_names import find_by_id, find_by_name  # late: few cases need GPUs

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
    """Return the GPUs of the host; empty if it has none or GPUs were not detected."""
    if isinstance(case.host.gpus, Missing):
        return ()
    return tuple(identify(gpu, case.facts) for gpu in case.host.gpus.value)


def compiled_for(gpus: Iterable[KnownGpu], cuda: Version, archs: "GpuArchTable | None") -> list[Version]:
    """Return the compute capabilities that nvcc of a CUDA release compiles for; all if the release is unknown."""
    row = archs.archs(cuda) if archs else None
    found = sorted({gpu.capability for gpu in gpus if gpu.capability is not None})
    return [one for one in found if not (row and (row.has_dropped(one) or row.is_older_than(one)))]
