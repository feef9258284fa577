"""The host report: what a machine offers, each value with its origin or the reason why it is missing.

It is what rules read; so it holds plain values, and kinds where something is decided by how a value came about. Its
written form is `tenv.host.report_json`.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenv.core.versions import Version
from tenv.core.worded import Worded
from tenv.host.interface import Fact, Missing, ReasonKind

if TYPE_CHECKING:
    from tenv.host.pythons import FoundPython

__all__ = [
    "Compat",
    "Compiler",
    "CompilerLimits",
    "Disk",
    "DriverKind",
    "FoundBy",
    "Gpu",
    "HostReport",
    "Lead",
    "LibcudaKind",
    "Libstdcxx",
    "ModuleKind",
    "ProblemKind",
    "Toolkit",
    "ToolkitProblem",
]


class Lead(Worded):
    """What leads to a toolkit or a compiler."""

    CUDA_VARIABLE = "cuda-variable", "CUDA_HOME or CUDA_PATH, which builds read"
    MODULE_VARIABLE = "module-variable", "a variable of environment modules, of CMake's users or of an installer"
    PATH = "path", "PATH; of several nvcc the first"
    PATH_BEHIND = "path-behind", "PATH, behind another nvcc"
    DEFAULT_FOLDER = "default-folder", "/usr/local/cuda"
    ALTERNATIVE = "alternative", "/etc/alternatives/cuda"
    FOLDER = "folder", "a folder where toolkits are installed"
    CC = "cc", "CC"
    CXX = "cxx", "CXX"
    CUDAHOSTCXX = "cudahostcxx", "CUDAHOSTCXX"
    NVCC = "nvcc", "NVCC_CCBIN, NVCC_PREPEND_FLAGS or NVCC_APPEND_FLAGS"
    PROMPT = "prompt", "a developer prompt of Visual Studio"
    VSWHERE = "vswhere", "vswhere.exe of Visual Studio"
    ENVIRONMENT = "environment", "the environment of the target"
    LOCK = "lock", "the lock of the target"
    OTHER = "other", "none of these"


class ProblemKind(Worded):
    """What is wrong with a toolkit."""

    GONE = "gone", "the variable or link leads nowhere"
    UNPLACED = "unplaced", "nvcc does not name its toolkit"
    NO_NVCC = "no-nvcc", "there is no nvcc in it"
    NVCC_FAILS = "nvcc-fails", "its nvcc names no release"
    HEADERS = "headers", "the headers are those of another release than nvcc"
    RELEASE = "release", "version.json names another release than nvcc"
    DESCRIPTIONS = "descriptions", "it has several descriptions that differ"
    DESCRIPTION = "description", "its description can't be read"
    NO_LIBRARY = "no-library", "its description names components of which there is no library"
    COMPONENT = "component", "its description names another version of a component"
    OTHER = "other", "none of these"


class LibcudaKind(Worded):
    """What a libcuda that stands before the driver's own is."""

    CUDA_COMPAT = "cuda-compat", "NVIDIA's package for forward compatibility, by its folder"
    WSL = "wsl", "the one that leads to the driver of Windows, by its folder"
    OTHER = "other", "a leftover of another driver"


class ModuleKind(Worded):
    """What the loaded kernel module is."""

    OPEN = "open", "NVIDIA's open kernel module"
    PROPRIETARY = "proprietary", "NVIDIA's proprietary kernel module"
    OTHER = "other", "none of these"


class DriverKind(Worded):
    """What a driver is for, where it is not the usual one."""

    VGPU_HOST = "vgpu-kvm", "the driver of a vGPU host, which has no CUDA"
    OTHER = "other", "none of these"


@dataclass(frozen=True, slots=True)
class FoundBy:
    """What led to a toolkit or a compiler.

    Attributes:
        kind: What decisions go by.
        text: The same for people: a variable, a path, ``g++, g++-12 on PATH``.
    """

    kind: Lead
    text: str


@dataclass(frozen=True, slots=True)
class ToolkitProblem:
    """What is wrong with a toolkit.

    Attributes:
        kind: What decisions go by.
        text: The same for people, with the figures.
    """

    kind: ProblemKind
    text: str


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU.

    Attributes:
        name: The name that the driver or the table of PCI ids gives it, or an empty string.
        compute_capability: Such as 8.6; None when neither the driver nor the table tells.
        memory: Bytes; None when not known.
        pci_id: Vendor and device, such as ``10de:2182``; an empty string when not known.
        pci_address: Such as ``0000:01:00.0``; an empty string when not known.
        mig: Whether it is split into instances (MIG).
    """

    name: str
    compute_capability: Version | None = None
    memory: int | None = None
    pci_id: str = ""
    pci_address: str = ""
    mig: bool = False


@dataclass(frozen=True, slots=True)
class Compat:
    """A libcuda that stands before the driver's own.

    Attributes:
        path: The library.
        version: The driver version that it was made from.
        kind: What it is.
    """

    path: str
    version: Version
    kind: LibcudaKind


@dataclass(frozen=True, slots=True)
class CompilerLimits:
    """The host compilers that a toolkit's own header does not refuse; None for what it does not say.

    Attributes:
        file: The header, ``crt/host_config.h``.
        gcc_max: The newest major version of GCC.
        clang_max: The newest major version of clang.
        msvc_min: The lowest ``_MSC_VER``.
        msvc_below: The lowest ``_MSC_VER`` that is too new.
    """

    file: str
    gcc_max: int | None = None
    clang_max: int | None = None
    msvc_min: int | None = None
    msvc_below: int | None = None


@dataclass(frozen=True, slots=True)
class Toolkit:
    """An installed CUDA toolkit.

    Attributes:
        path: Its folder, links resolved.
        found_by: Every way that leads to it, such as ``/usr/local/cuda``, ``CUDA_HOME``, ``nvcc on PATH``.
        version: The release: nvcc's own word, to the update where ``version.json`` agrees with it, else
            ``version.json``'s; None when neither tells.
        components: Versions of its components by NVIDIA's names (``cuda_nvcc``, ``cuda_cudart`` …).
        problems: What is wrong with it: no nvcc, a version.json that says otherwise …
        compiles: Whether its nvcc answered.
        environment: The environment of tenv that it is a part of, or an empty string: none of the machine's own then.
        home: The folder above ``include`` and ``bin``, where that is not `path`: ``/usr`` for Debian's own packages.
        compilers: The host compilers that its headers do not refuse; None where it has no such header.
        patched: The functions that its ``crt/math_functions.h`` declares as the headers of a newer glibc do.
        absent: What builds of PyTorch look for and do not find with it (`tenv.host.absent_parts`); None where nobody
            looked.
    """

    path: str
    found_by: tuple[FoundBy, ...]
    version: Version | None
    components: tuple[tuple[str, str], ...] = ()
    problems: tuple[ToolkitProblem, ...] = ()
    compiles: bool = True
    home: str = ""
    environment: str = ""
    compilers: CompilerLimits | None = None
    patched: tuple[str, ...] = ()
    absent: tuple[str, ...] | None = None

    def led_by(self, *kinds: Lead) -> bool:
        """Tell whether something of these kinds leads to it."""
        return any(way.kind in kinds for way in self.found_by)

    @property
    def ways(self) -> str:
        """What leads to it, for people."""
        return ", ".join(way.text for way in self.found_by)


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C or C++ compiler.

    Attributes:
        kind: ``gcc``, ``g++``, ``clang``, ``clang++`` or ``msvc``.
        path: The program, links resolved.
        version: Its version.
        default: Whether a build would take it: named by CC or CXX, else the first ``cc`` or ``c++`` on PATH, else the
            first of the others.
        found_by: Such as ``CXX`` or ``g++-12 on PATH``.
        nvcc: Whether nvcc takes it: by its own variables and flags, else as the ``gcc`` on PATH.
        glibcxx: The highest ``GLIBCXX_`` version of the libstdc++ that it links; None when not known.
    """

    kind: str
    path: str
    version: Version
    default: bool
    found_by: tuple[FoundBy, ...]
    nvcc: bool = False
    glibcxx: Version | None = None

    def led_by(self, *kinds: Lead) -> bool:
        """Tell whether something of these kinds leads to it."""
        return any(way.kind in kinds for way in self.found_by)

    @property
    def ways(self) -> str:
        """What leads to it, for people."""
        return "; ".join(way.text for way in self.found_by)


@dataclass(frozen=True, slots=True)
class Libstdcxx:
    """The libstdc++ that the loader takes.

    Attributes:
        path: The file, links resolved.
        glibcxx: The highest ``GLIBCXX_`` version that it defines.
        cxxabi: The highest ``CXXABI_`` version that it defines.
    """

    path: str
    glibcxx: Version
    cxxabi: Version


@dataclass(frozen=True, slots=True)
class Disk:
    """Where environments go.

    Attributes:
        path: The folder that was asked about.
        free: Bytes that this user may still write.
        file_system: Its type, such as ``ext4`` or ``nfs4``.
    """

    path: str
    free: int
    file_system: str


def _row(field_of: str) -> dict[str, str]:
    """Return what `tenv.host.fields` finds a row's `HostField` by: its module and its name there."""
    return {"field": field_of}


@dataclass(frozen=True, slots=True)
class HostReport:
    """What a machine offers, in the order in which people read it.

    This is the table of fields: each line names a value, its type, and the `tenv.host.field.HostField` that says how it
    is probed, read from JSON, shown and explained. Collecting, both directions of JSON, ``tenv host`` and the table in
    ``docs/host.md`` go through these lines, so that a new value is one line here and one file.
    """

    hostname: Fact[str] | Missing = field(metadata=_row("system:HOSTNAME"))
    platform: Fact[str] | Missing = field(metadata=_row("system:PLATFORM"))
    driver: Fact[Version] | Missing = field(metadata=_row("driver:DRIVER"))
    module: Fact[ModuleKind] | Missing = field(metadata=_row("kernel_module:MODULE"))
    driver_kind: Fact[DriverKind] | Missing = field(metadata=_row("kernel_module:DRIVER_KIND"))
    l4t: Fact[Version] | Missing = field(metadata=_row("driver:L4T"))
    cuda: Fact[Version] | Missing = field(metadata=_row("cuda_api:CUDA"))
    compat: Fact[Compat] | Missing = field(metadata=_row("compat:COMPAT"))
    gpus: Fact[tuple[Gpu, ...]] | Missing = field(metadata=_row("gpus:GPUS"))
    toolkits: Fact[tuple[Toolkit, ...]] | Missing = field(metadata=_row("toolkits:TOOLKITS"))
    compilers: Fact[tuple[Compiler, ...]] | Missing = field(metadata=_row("compilers:COMPILERS"))
    libc: Fact[Version] | Missing = field(metadata=_row("machine:LIBC"))
    libstdcxx: Fact[Libstdcxx] | Missing = field(metadata=_row("libstdcxx:LIBSTDCXX"))
    pythons: "Fact[tuple[FoundPython, ...]] | Missing" = field(metadata=_row("pythons:PYTHONS"))
    cores: Fact[int] | Missing = field(metadata=_row("machine:CORES"))
    memory: Fact[int] | Missing = field(metadata=_row("machine:MEMORY"))
    disk: Fact[Disk] | Missing = field(metadata=_row("storage:DISK"))
    wsl: Fact[bool] | Missing = field(metadata=_row("system:WSL"))
    container: Fact[str] | Missing = field(metadata=_row("container:CONTAINER"))
    ptrace_scope: Fact[int] | Missing = field(metadata=_row("system:PTRACE_SCOPE"))

    @classmethod
    def unknown(cls) -> "HostReport":
        """Return the report on a machine of which nothing was reported."""
        return cls(**dict.fromkeys(cls.__slots__, Missing.because(ReasonKind.UNREPORTED)))
