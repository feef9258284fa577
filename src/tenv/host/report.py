"""The host report: what a machine offers, each value with its origin or the reason why it is missing.

It is what rules read, what `tenv host --json` prints, and what a fleet check reads back; so it holds plain values, and
`to_json` and `from_json` are each other's inverse.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from tenv import __version__
from tenv.errors import HostReportError
from tenv.host.interface import Fact, Missing
from tenv.host.values import Values
from tenv.versions import Version

__all__ = ["Compat", "Compiler", "CompilerLimits", "Disk", "Gpu", "HostReport", "Libstdcxx", "Toolkit"]

T = TypeVar("T")

_SCHEMA = 1


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

    def to_json(self) -> dict[str, Any]:
        """Return the GPU as plain values."""
        return {
            "name": self.name,
            "compute_capability": _text(self.compute_capability),
            "memory": self.memory,
            "pci_id": self.pci_id,
            "pci_address": self.pci_address,
            "mig": self.mig,
        }

    @classmethod
    def from_json(cls, values: Values) -> "Gpu":
        """Return the GPU that plain values stand for."""
        return cls(
            name=values.text("name"),
            compute_capability=values.optional(values.version, "compute_capability"),
            memory=values.optional(values.number, "memory"),
            pci_id=values.optional(values.text, "pci_id") or "",
            pci_address=values.optional(values.text, "pci_address") or "",
            mig=values.optional(values.flag, "mig") or False,
        )


@dataclass(frozen=True, slots=True)
class Compat:
    """A cuda-compat library that stands before the driver's own libcuda.

    Attributes:
        path: The library.
        version: The driver version that it was made from.
    """

    path: str
    version: Version

    def to_json(self) -> dict[str, Any]:
        """Return the library as plain values."""
        return {"path": self.path, "version": str(self.version)}

    @classmethod
    def from_json(cls, values: Values) -> "Compat":
        """Return the library that plain values stand for."""
        return cls(path=values.text("path"), version=values.version("version"))


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

    def to_json(self) -> dict[str, Any]:
        """Return the limits as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, values: Values) -> "CompilerLimits":
        """Return the limits that plain values stand for."""
        names = ("gcc_max", "clang_max", "msvc_min", "msvc_below")
        return cls(values.text("file"), *(values.optional(values.number, name) for name in names))


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

    def to_json(self) -> dict[str, Any]:
        """Return the toolkit as plain values."""
        return {
            "path": self.path,
            "found_by": list(self.found_by),
            "version": _text(self.version),
            "components": dict(self.components),
            "problems": list(self.problems),
            "compiles": self.compiles,
            "home": self.home,
            "environment": self.environment,
            "compilers": self.compilers.to_json() if self.compilers else None,
        }

    @classmethod
    def from_json(cls, values: Values) -> "Toolkit":
        """Return the toolkit that plain values stand for."""
        components = values.optional(values.object, "components")
        limits = values.optional(values.object, "compilers")
        return cls(
            path=values.text("path"),
            found_by=values.texts("found_by"),
            version=values.optional(values.version, "version"),
            components=tuple((name, components.text(name)) for name in components.data) if components else (),
            problems=values.optional(values.texts, "problems") or (),
            compiles=values.optional(values.flag, "compiles") is not False,
            home=values.optional(values.text, "home") or "",
            environment=values.optional(values.text, "environment") or "",
            compilers=CompilerLimits.from_json(limits) if limits else None,
        )


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

    def to_json(self) -> dict[str, Any]:
        """Return the compiler as plain values."""
        return {
            "kind": self.kind,
            "path": self.path,
            "version": str(self.version),
            "default": self.default,
            "found_by": self.found_by,
        }

    @classmethod
    def from_json(cls, values: Values) -> "Compiler":
        """Return the compiler that plain values stand for."""
        return cls(
            kind=values.text("kind"),
            path=values.text("path"),
            version=values.version("version"),
            default=values.flag("default"),
            found_by=values.text("found_by"),
        )


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

    def to_json(self) -> dict[str, Any]:
        """Return the library as plain values."""
        return {"path": self.path, "glibcxx": str(self.glibcxx), "cxxabi": str(self.cxxabi)}

    @classmethod
    def from_json(cls, values: Values) -> "Libstdcxx":
        """Return the library that plain values stand for."""
        return cls(path=values.text("path"), glibcxx=values.version("glibcxx"), cxxabi=values.version("cxxabi"))


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

    def to_json(self) -> dict[str, Any]:
        """Return the disk as plain values."""
        return {"path": self.path, "free": self.free, "file_system": self.file_system}

    @classmethod
    def from_json(cls, values: Values) -> "Disk":
        """Return the disk that plain values stand for."""
        return cls(path=values.text("path"), free=values.number("free"), file_system=values.text("file_system"))


@dataclass(frozen=True, slots=True)
class HostReport:
    """What a machine offers.

    Attributes:
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
        hostname: The machine's name.
    """

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
    hostname: Fact[str] | Missing

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values, in the order in which a person reads it."""
        return {
            "schema": _SCHEMA,
            "tenv": __version__,
            "hostname": _fact(self.hostname),
            "platform": _fact(self.platform),
            "driver": _fact(self.driver, str),
            "cuda": _fact(self.cuda, str),
            "compat": _fact(self.compat, Compat.to_json),
            "gpus": _fact(self.gpus, lambda gpus: [gpu.to_json() for gpu in gpus]),
            "toolkits": _fact(self.toolkits, lambda toolkits: [toolkit.to_json() for toolkit in toolkits]),
            "compilers": _fact(self.compilers, lambda compilers: [compiler.to_json() for compiler in compilers]),
            "libc": _fact(self.libc, str),
            "libstdcxx": _fact(self.libstdcxx, Libstdcxx.to_json),
            "cores": _fact(self.cores),
            "memory": _fact(self.memory),
            "disk": _fact(self.disk, Disk.to_json),
            "wsl": _fact(self.wsl),
            "container": _fact(self.container),
            "ptrace_scope": _fact(self.ptrace_scope),
        }

    @classmethod
    def from_json(cls, data: object, source: str = "the report") -> "HostReport":
        """Return the report that plain values stand for; keys that this tenv does not know are left aside.

        Args:
            data: What `to_json` gives, or the whole output of ``tenv host --json``.
            source: What it was read from, for messages.

        Raises:
            HostReportError: It is no report, or one of a form that only a newer tenv knows.
        """
        report = _report_of(data, source)

        def read(name: str, value: Callable[[Values], T]) -> Fact[T] | Missing:
            return _from_fact(report, name, value)

        return cls(
            platform=read("platform", lambda fact: fact.text("value")),
            driver=read("driver", lambda fact: fact.version("value")),
            cuda=read("cuda", lambda fact: fact.version("value")),
            compat=read("compat", lambda fact: Compat.from_json(fact.object("value"))),
            gpus=read("gpus", lambda fact: tuple(map(Gpu.from_json, fact.objects("value")))),
            toolkits=read("toolkits", lambda fact: tuple(map(Toolkit.from_json, fact.objects("value")))),
            compilers=read("compilers", lambda fact: tuple(map(Compiler.from_json, fact.objects("value")))),
            libc=read("libc", lambda fact: fact.version("value")),
            libstdcxx=read("libstdcxx", lambda fact: Libstdcxx.from_json(fact.object("value"))),
            cores=read("cores", lambda fact: fact.number("value")),
            memory=read("memory", lambda fact: fact.number("value")),
            disk=read("disk", lambda fact: Disk.from_json(fact.object("value"))),
            wsl=read("wsl", lambda fact: fact.flag("value")),
            container=read("container", lambda fact: fact.text("value")),
            ptrace_scope=read("ptrace_scope", lambda fact: fact.number("value")),
            hostname=read("hostname", lambda fact: fact.text("value")),
        )


def _text(version: Version | None) -> str | None:
    return None if version is None else str(version)


def _fact(answer: Fact[T] | Missing, value: Callable[[T], Any] = lambda value: value) -> dict[str, Any]:
    if isinstance(answer, Missing):
        return {"missing": answer.reason}
    return {"value": value(answer.value), "origin": answer.origin}


def _from_fact(report: Values, name: str, value: Callable[[Values], T]) -> Fact[T] | Missing:
    if name not in report.data:
        return Missing("the report does not say")
    fact = report.object(name)
    if "missing" in fact.data:
        return Missing(fact.text("missing"))
    return Fact(value(fact), fact.text("origin"))


def _report_of(data: object, source: str) -> Values:
    """Return the report itself, taken out of the envelope if it is in one, once its form is known to be ours."""
    values = Values.of(data, source)
    writer = values.data.get("tenv")
    if "command" in values.data and "data" in values.data:
        if values.data["command"] != "host":
            raise HostReportError(f"{source}: the output of `tenv {values.data['command']}`, not of `tenv host`")
        values = Values.of(values.data["data"], source, "data")
        writer = values.data.get("tenv", writer)
    schema = values.data.get("schema")
    hint = "`tenv host --json` writes one"
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise HostReportError(f"{source}: not a host report: it has no `schema`", hint=hint)
    if schema > _SCHEMA:
        raise HostReportError(
            f"{source}: tenv {writer or '(of unknown version)'} wrote it in form {schema}; "
            f"this is tenv {__version__}, which reads form {_SCHEMA}",
            hint="update tenv here, or write the report with this version",
        )
    return values
