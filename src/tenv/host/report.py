"""The host report: values of a host, each with its origin or the reason why it is missing.

Rules read it, so it holds plain values, and a kind if a decision depends on the origin of a value.
`tenv.host.report_json` has its JSON form.
"""

from dataclasses import field
from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column, OptionalText, Table
from tenv.core.versions import Version
from tenv.core.worded import Worded
from tenv.host.interface import Fact, Missing, ReasonKind


class Lead(Worded):
    """How a toolkit or a compiler was found."""

    CUDA_VARIABLE = "cuda-variable", "CUDA_HOME or CUDA_PATH, which builds read"
    ROCM_VARIABLE = "rocm-variable", "ROCM_PATH or ROCM_HOME, which builds read"
    ROCM_SDK = "rocm-sdk", "the program rocm-sdk of AMD's wheels"
    MODULE_VARIABLE = "module-variable", "a variable of environment modules, of CMake's users or of an installer"
    PATH = "path", "PATH; of several nvcc the first"
    PATH_BEHIND = "path-behind", "PATH, after another nvcc"
    DEFAULT_FOLDER = "default-folder", "/usr/local/cuda or /opt/rocm"
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
    """The kind of a toolkit's problem."""

    GONE = "gone", "the variable or link names a missing folder"
    UNPLACED = "unplaced", "nvcc does not name its toolkit"
    NO_NVCC = "no-nvcc", "it has no nvcc"
    NVCC_FAILS = "nvcc-fails", "its nvcc reports no release"
    HEADERS = "headers", "the headers have another release than nvcc"
    RELEASE = "release", "version.json has another release than nvcc"
    DESCRIPTIONS = "descriptions", "it has several descriptions that differ"
    DESCRIPTION = "description", "its description is unreadable"
    NO_LIBRARY = "no-library", "its description lists components without a library"
    COMPONENT = "component", "its description has another version of a component"
    OTHER = "other", "none of these"


class LibcudaKind(Worded):
    """The kind of a libcuda that is loaded before the driver's own."""

    CUDA_COMPAT = "cuda-compat", "NVIDIA's package for forward compatibility, by its folder"
    WSL = "wsl", "the one of the Windows driver, by its folder"
    OTHER = "other", "a leftover of another driver"


class ModuleKind(Worded):
    """The kind of the loaded kernel module."""

    OPEN = "open", "NVIDIA's open kernel module"
    PROPRIETARY = "proprietary", "NVIDIA's proprietary kernel module"
    OTHER = "other", "none of these"


class DriverKind(Worded):
    """The purpose of a driver if it is not the usual one."""

    VGPU_HOST = "vgpu-kvm", "a vGPU host driver, which has no CUDA"
    OTHER = "other", "none of these"


class FabricState(Worded):
    """The state of a GPU's registration with NVSwitch, which the fabric manager sets up."""

    NOT_STARTED = "not-started", "no fabric manager has begun it"
    IN_PROGRESS = "in-progress", "the fabric manager has not finished it, or does not run"
    COMPLETED = "completed", "it is done"
    OTHER = "other", "none of these"


@dataclass(frozen=True, slots=True)
class FoundBy:
    """How a toolkit or a compiler was found."""

    kind: Lead
    """The kind, for decisions."""
    text: str
    """The same for people: a variable, a path, ``g++, g++-12 on PATH``."""


class _Detected:
    """The result of a search: a toolkit or a compiler."""

    __slots__ = ()
    found_by: tuple[FoundBy, ...]

    def led_by(self, *kinds: Lead) -> bool:
        """Return whether it was found in one of these ways."""
        return any(way.kind in kinds for way in self.found_by)

    @property
    def ways(self) -> str:
        """How it was found, as text."""
        return ", ".join(way.text for way in self.found_by)


@dataclass(frozen=True, slots=True)
class ToolkitProblem:
    """A problem of a toolkit."""

    kind: ProblemKind
    """The kind, for decisions."""
    text: str
    """The same for people, with the figures."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU."""

    name: str = ""
    """The name that the driver or the table of PCI ids gives it, or an empty string."""
    compute_capability: Version | None = None
    """Such as 8.6; None if neither the driver nor the table has it."""
    memory: int | None = None
    """Bytes; None if not known."""
    pci_id: str = ""
    """Vendor and device, such as ``10de:2182``; an empty string when not known."""
    pci_address: str = ""
    """Such as ``0000:01:00.0``; an empty string when not known."""
    mig: bool = False
    """Whether it is split into instances (MIG)."""
    fabric: Annotated[FabricState | None, Column(default=None)] = None
    """The state of its registration with NVSwitch; None without NVSwitch, or where the driver has no answer."""


@dataclass(frozen=True, slots=True)
class AmdGpu:
    """An AMD GPU."""

    name: str = ""
    """The name that a tool of AMD or a pasted text gives it, or an empty string."""
    gfx: str = ""
    """Its architecture, such as ``gfx90a``, or an empty string."""


@dataclass(frozen=True, slots=True)
class KfdAccess:
    """The access of a user to ``/dev/kfd``."""

    opens: bool
    """Whether the user may open it for reading and writing."""
    group: str
    """The group of the device, most often ``render``."""


@dataclass(frozen=True, slots=True)
class Compat:
    """A libcuda that is loaded before the driver's own."""

    path: str
    """The library."""
    version: Version
    """The driver version that it comes from."""
    kind: LibcudaKind
    """Its kind."""


@dataclass(frozen=True, slots=True)
class CompilerLimits:
    """The host compilers that a toolkit's own header accepts; None for limits that it does not have."""

    file: str
    """The header, ``crt/host_config.h``."""
    gcc_max: int | None = None
    """The newest major version of GCC."""
    clang_max: int | None = None
    """The newest major version of clang."""
    msvc_min: int | None = None
    """The lowest ``_MSC_VER``."""
    msvc_below: int | None = None
    """The lowest ``_MSC_VER`` that is too new."""


def _by_name(row: Table, key: str) -> tuple[tuple[str, str], ...]:
    table = row.table(key)
    return tuple((name, table.text(name)) for name in table.data)


@dataclass(frozen=True, slots=True)
class Toolkit(_Detected):
    """An installed CUDA toolkit."""

    path: OptionalText
    """Its folder, links resolved; empty if a pasted text does not name it."""
    found_by: tuple[FoundBy, ...]
    """Every way it was found, such as ``/usr/local/cuda``, ``CUDA_HOME``, ``nvcc on PATH``."""
    version: Version | None
    """The release that nvcc reports, with the update if ``version.json`` agrees, else ``version.json``'s; None if
    neither has one."""
    components: Annotated[tuple[tuple[str, str], ...], Column(read=_by_name)] = ()
    """Versions of its components by NVIDIA's names (``cuda_nvcc``, ``cuda_cudart`` …)."""
    problems: tuple[ToolkitProblem, ...] = ()
    """Its problems: no nvcc, a contradicting version.json …"""
    compiles: bool = True
    """Whether its nvcc answered."""
    home: str = ""
    """The folder above ``include`` and ``bin`` if it is not `path`: ``/usr`` for Debian's own packages."""
    environment: str = ""
    """The tenv environment that contains it, or an empty string if it is the host's own."""
    compilers: CompilerLimits | None = None
    """The host compilers that its headers accept; None if it has no such header."""
    patched: tuple[str, ...] = ()
    """The functions that its ``crt/math_functions.h`` declares as the headers of a newer glibc do."""
    absent: tuple[str, ...] | None = None
    """The parts that PyTorch builds need and it lacks (`tenv.host.toolkit_content`); None if not searched."""


@dataclass(frozen=True, slots=True)
class Rocm(_Detected):
    """An installed ROCm."""

    path: OptionalText
    """Its folder, links resolved: ``/usr`` for the packages of distributions; empty if a text does not name it."""
    found_by: tuple[FoundBy, ...]
    """Every way it was found, such as ``/opt/rocm``, ``ROCM_PATH``, ``hipcc on PATH``."""
    version: Version | None
    """The release of ``.info/version`` or ``rocm_version.h``, else HIP's major and minor; None without both."""
    hip: Version | None = None
    """The version of HIP; None without its header."""
    derived: bool = False
    """Whether `version` is HIP's, for want of rocm-core."""
    parts: Annotated[tuple[tuple[str, str], ...], Column(read=_by_name)] = ()
    """The versions of its parts by the names of their CMake packages; empty for a package without one."""
    clang: str = ""
    """The compiler of HIP, or an empty string."""
    bitcode: str = ""
    """The folder of the device libraries, or an empty string."""
    compiles: tuple[str, ...] | None = None
    """The architectures that the compiler knows and the device libraries have; None if not asked."""
    kernels: tuple[str, ...] = ()
    """The architectures for which rocBLAS has kernels."""
    problems: tuple[str, ...] = ()
    """Its problems, one sentence each."""
    environment: str = ""
    """The tenv environment that contains it, or an empty string if it is the host's own."""


@dataclass(frozen=True, slots=True)
class Compiler(_Detected):
    """A C or C++ compiler."""

    kind: str
    """``gcc``, ``g++``, ``clang``, ``clang++`` or ``msvc``."""
    path: str
    """The program, links resolved."""
    version: Version
    """Its version."""
    default: bool
    """Whether a build uses it: named by CC or CXX, else the first ``cc`` or ``c++`` on PATH, else the first of the
    others."""
    found_by: tuple[FoundBy, ...]
    """Such as ``CXX`` or ``g++-12 on PATH``."""
    nvcc: bool = False
    """Whether nvcc uses it: by its own variables and flags, else as the ``gcc`` on PATH."""
    glibcxx: Version | None = None
    """The highest ``GLIBCXX_`` version of the libstdc++ that it links; None if unknown."""

    @property
    def ways(self) -> str:
        """How it was found, as text."""
        return "; ".join(way.text for way in self.found_by)


@dataclass(frozen=True, slots=True)
class FoundPython:
    """A Python on a machine."""

    path: str
    """Its program; of a virtual environment, the one behind it."""
    version: Version
    """Its version, at least the minor."""
    headers: bool
    """Whether ``Python.h`` is there, without which no extension can be compiled."""
    debug: Annotated[bool | None, Column(default=None)] = False
    """Whether it is a debug build, which only a target that asks for one is made with; None if the report does not have
    it."""


@dataclass(frozen=True, slots=True)
class FoundTorch:
    """A torch that the shell leads to."""

    path: str
    """Its folder."""
    version: str
    """Its version with the local part, ``2.9.1+cu128``."""
    kind: str
    """The accelerator that it was compiled for: ``cpu``, ``cuda``, ``rocm``, ``xpu``."""
    cuda: Version | None
    """The CUDA release of its compiler; None without CUDA."""
    found_by: str
    """The variable, or the program on PATH."""


@dataclass(frozen=True, slots=True)
class Libstdcxx:
    """The libstdc++ that the loader finds."""

    path: str
    """The file, links resolved."""
    glibcxx: Version
    """The highest ``GLIBCXX_`` version that it defines."""
    cxxabi: Version
    """The highest ``CXXABI_`` version that it defines."""


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk of the environments."""

    path: str
    """The requested folder."""
    free: int
    """Bytes that this user may still write."""
    file_system: str
    """Its type, such as ``ext4`` or ``nfs4``."""


def _row(field_of: str) -> dict[str, str]:
    """Return the module and the name by which `tenv.host.field` finds a row's `HostField`."""
    return {"field": field_of}


@dataclass(frozen=True, slots=True)
class HostReport:
    """The values of a host, in the order in which they are printed.

    This is the table of fields: each line has a value's name, its type, by which it is read from JSON, and its
    `tenv.host.field.HostField`, which defines how it is probed, shown and documented. Collecting, both directions of
    JSON, ``tenv host`` and the table in ``docs/host.md`` use these lines, so that a new value is one line here and one
    file.
    """

    hostname: Fact[str] | Missing = field(metadata=_row("system:HOSTNAME"))
    platform: Fact[str] | Missing = field(metadata=_row("system:PLATFORM"))
    driver: Fact[Version] | Missing = field(metadata=_row("driver:DRIVER"))
    module: Fact[ModuleKind] | Missing = field(metadata=_row("driver:MODULE"))
    driver_kind: Fact[DriverKind] | Missing = field(metadata=_row("driver:DRIVER_KIND"))
    l4t: Fact[Version] | Missing = field(metadata=_row("driver:L4T"))
    cuda: Fact[Version] | Missing = field(metadata=_row("cuda_api:CUDA"))
    compat: Fact[Compat] | Missing = field(metadata=_row("compat:COMPAT"))
    gpus: Fact[tuple[Gpu, ...]] | Missing = field(metadata=_row("gpus:GPUS"))
    toolkits: Fact[tuple[Toolkit, ...]] | Missing = field(metadata=_row("toolkits:TOOLKITS"))
    amd_driver: Fact[Version] | Missing = field(metadata=_row("amd:AMD_DRIVER"))
    amd_gpus: Fact[tuple[AmdGpu, ...]] | Missing = field(metadata=_row("amd:AMD_GPUS"))
    kfd: Fact[KfdAccess] | Missing = field(metadata=_row("amd:KFD"))
    rocms: Fact[tuple[Rocm, ...]] | Missing = field(metadata=_row("rocms:ROCMS"))
    oneapi: Fact[str] | Missing = field(metadata=_row("oneapi:ONEAPI"))
    icpx: Fact[Version] | Missing = field(metadata=_row("oneapi:ICPX"))
    compilers: Fact[tuple[Compiler, ...]] | Missing = field(metadata=_row("compilers:COMPILERS"))
    libc: Fact[Version] | Missing = field(metadata=_row("machine:LIBC"))
    libstdcxx: Fact[Libstdcxx] | Missing = field(metadata=_row("libstdcxx:LIBSTDCXX"))
    pythons: Fact[tuple[FoundPython, ...]] | Missing = field(metadata=_row("pythons:PYTHONS"))
    torches: Fact[tuple[FoundTorch, ...]] | Missing = field(metadata=_row("torches:TORCHES"))
    cores: Fact[int] | Missing = field(metadata=_row("machine:CORES"))
    memory: Fact[int] | Missing = field(metadata=_row("machine:MEMORY"))
    disk: Fact[Disk] | Missing = field(metadata=_row("machine:DISK"))
    wsl: Fact[bool] | Missing = field(metadata=_row("system:WSL"))
    container: Fact[str] | Missing = field(metadata=_row("system:CONTAINER"))
    ptrace_scope: Fact[int] | Missing = field(metadata=_row("system:PTRACE_SCOPE"))

    @property
    def every_gpu(self) -> Fact[tuple[Gpu, ...]] | Missing:
        """The GPUs of the whole machine, also where one of them is judged alone."""
        return self.gpus

    @classmethod
    def unknown(cls) -> "HostReport":
        """Return a report without values."""
        return cls(**dict.fromkeys(cls.__slots__, Missing.because(ReasonKind.UNREPORTED)))
