"""The host report: what a machine offers, each value with its origin or the reason why it is missing.

It is what rules read; so it holds plain values. Its written form is `tenv.host.report_json`.
"""

from dataclasses import dataclass

from tenv.core.versions import Version
from tenv.host.interface import Fact, Missing

__all__ = ["Compat", "Compiler", "CompilerLimits", "Disk", "Gpu", "HostReport", "Libstdcxx", "Toolkit"]


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
    """A cuda-compat library that stands before the driver's own libcuda.

    Attributes:
        path: The library.
        version: The driver version that it was made from.
    """

    path: str
    version: Version


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
        problems: What is wrong with it, in sentences: no nvcc, a version.json that says otherwise …
        compiles: Whether its nvcc answered.
        environment: The environment of tenv that it is a part of, or an empty string: none of the machine's own then.
        home: The folder above ``include`` and ``bin``, where that is not `path`: ``/usr`` for Debian's own packages.
        compilers: The host compilers that its headers do not refuse; None where it has no such header.
    """

    path: str
    found_by: tuple[str, ...]
    version: Version | None
    components: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()
    compiles: bool = True
    home: str = ""
    environment: str = ""
    compilers: CompilerLimits | None = None


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
    """

    kind: str
    path: str
    version: Version
    default: bool
    found_by: str


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


@dataclass(frozen=True, slots=True)
class HostReport:
    """What a machine offers, in the order in which a person reads it.

    Attributes:
        hostname: The machine's name.
        platform: By its conda name, such as ``linux-64``.
        driver: The kernel driver's version.
        cuda: The newest CUDA that libcuda offers (raised by cuda-compat, unlike `driver`).
        compat: The cuda-compat library in the way; Missing when there is none.
        gpus: The GPUs; an empty tuple when there is certainly none.
        toolkits: The installed CUDA toolkits.
        compilers: The compilers on PATH, and those that CC, CXX and CUDAHOSTCXX name.
        libc: The C library's version, origin naming it.
        libstdcxx: The C++ library.
        cores: Processors that may be used, control groups counted in.
        memory: Bytes, control groups counted in.
        disk: Where environments go.
        wsl: Whether this is Linux under Windows.
        container: The kind of container, such as ``docker``; Missing outside one.
        ptrace_scope: ``kernel.yama.ptrace_scope``; Missing where there is no Yama.
    """

    hostname: Fact[str] | Missing
    platform: Fact[str] | Missing
    driver: Fact[Version] | Missing
    cuda: Fact[Version] | Missing
    compat: Fact[Compat] | Missing
    gpus: Fact[tuple[Gpu, ...]] | Missing
    toolkits: Fact[tuple[Toolkit, ...]] | Missing
    compilers: Fact[tuple[Compiler, ...]] | Missing
    libc: Fact[Version] | Missing
    libstdcxx: Fact[Libstdcxx] | Missing
    cores: Fact[int] | Missing
    memory: Fact[int] | Missing
    disk: Fact[Disk] | Missing
    wsl: Fact[bool] | Missing
    container: Fact[str] | Missing
    ptrace_scope: Fact[int] | Missing

    @classmethod
    def unknown(cls, reason: str) -> "HostReport":
        """Return the report on a machine of which nothing is known, for one reason."""
        return cls(**dict.fromkeys(cls.__slots__, Missing(reason)))
