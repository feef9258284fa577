"""A library: its needs of the loader and the GPUs that it holds code for; and the findings about it.

GPU code stands in fat binaries. A fat binary is a header (magic, version, size of the header, size of the rest) and a
list of images, each with a header of its own: kind, size of header and payload, compute capability, flags. The payload,
compressed (LZ4 or zstd) or not, need not be read. NVIDIA does not publish the format; it was read off the output of
nvcc 13.0 and of cuobjdump 13.5, and holds for the files of nvcc 11.8 to 13.2.
"""

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from mmap import mmap
from typing import Any

from tenv.audits.audited_tree import AuditedTree, TreePart
from tenv.checks.rules.interface import Finding, Severity, Unknown
from tenv.core.dataclass import dataclass
from tenv.core.elf import CxxAbi, Elf, ElfFaultError, ElfFile, read_elf
from tenv.core.versions import Version
from tenv.facts.cuda_gpu_arch import GpuArch

CODES = {
    "TE001": "a file can't be read",
    "TE002": "a library that is found nowhere",
    "TE003": "a library from outside the environment",
    "TE004": "a stub of the CUDA driver",
    "TE005": "a host with older libraries or another processor",
    "TE006": "a driver that is too old for the CUDA run time",
    "TE007": "a GPU without code",
    "TE008": "architectures that were asked for and are not there",
    "TE009": "a wheel's tag that promises too much",
    "TE010": "two C++ ABIs",
    "TE011": "a folder of the build machine in a run path",
    "TE012": "a build that differs from its target",
    "TE013": "an extension of another torch",
    "TE014": "an extension of another Python",
}


def audit_finding(
    code: str,
    severity: Severity,
    subject: str,
    message: str,
    evidence: str,
    source: str,
    fix: str,
    unknown: Unknown | None = None,
) -> Finding:
    """Return a finding of an audit; raises KeyError for a code that is not one of `CODES`."""
    if code not in CODES:
        raise KeyError(code)
    return Finding(code, severity, subject, message, evidence, source, fix, unknown)


SECTIONS = (".nv_fatbin", "__nv_relfatbin")
"""Where the linker collects fat binaries: of finished and of relocatable device code (-rdc)."""

_MAGIC = struct.pack("<IH", 0xBA55ED50, 1)
_CONTAINER = struct.Struct("<IHHQ")
_IMAGE = struct.Struct("<HHIQ12xI8xQ")  # kind, version, header, payload, ..., compute capability, ..., flags
_LEAST_IMAGE = 64
_PTX, _CUBIN, _IR = 1, 2, 8
_OF_ONE_ARCHITECTURE, _OF_A_FAMILY = 0x100000, 0x200000
_MOST_IMAGES = 1 << 22


@dataclass(frozen=True, slots=True)
class GpuCode:
    """The GPU code of a library."""

    cubin: tuple[GpuArch, ...] = ()
    """The architectures of its machine code, rising."""
    ptx: tuple[GpuArch, ...] = ()
    """The architectures of its PTX."""
    ir: tuple[GpuArch, ...] = ()
    """The architectures of code that nvlink or nvJitLink finishes (LTO)."""

    def serves(self, capability: int) -> bool:
        """Return whether it runs on a GPU of this compute capability, at once or compiled by the driver."""
        return any(code.runs_on(capability) for code in self.cubin) or any(
            code.compiles_for(capability) for code in self.ptx
        )


def gpu_code(data: bytes | mmap, elf: Elf) -> GpuCode:
    """Return the GPU code of a library; raises ElfFaultError for a fat binary that contradicts itself."""
    found: dict[int, set[GpuArch]] = {}
    for section in elf.sections:
        if section.name in SECTIONS:
            for kind, code in _images(data, section.offset, section.offset + section.size):
                found.setdefault(kind, set()).add(code)
    return GpuCode(*(tuple(sorted(found.get(kind, ()))) for kind in (_CUBIN, _PTX, _IR)))


def _images(data: bytes | mmap, start: int, stop: int) -> Iterator[tuple[int, GpuArch]]:
    left = _MOST_IMAGES
    while (start := data.find(_MAGIC, start, stop)) >= 0:
        if start + _CONTAINER.size > stop:
            raise ElfFaultError(f"the fat binary at {start:#x} is truncated")
        _, _, header, size = _CONTAINER.unpack_from(data, start)
        position, end = start + header, start + header + size
        if header < _CONTAINER.size or end > stop:
            raise ElfFaultError(f"the fat binary at {start:#x} is larger than its section")
        while position + _LEAST_IMAGE <= end:
            kind, _, header, size, number, flags = _IMAGE.unpack_from(data, position)
            left -= 1
            if header < _LEAST_IMAGE or position + header + size > end or left <= 0:
                raise ElfFaultError(f"an image of the fat binary at {start:#x} has no end")
            suffix = "a" if flags & _OF_ONE_ARCHITECTURE else "f" if flags & _OF_A_FAMILY else ""
            yield kind, GpuArch(number, suffix)
            position += header + size
        start = end


_SYMBOL = re.compile(r"(GLIBC|GLIBCXX|CXXABI|GCC)_(\d+(?:\.\d+)*)")
_MARKERS = {"GLIBC_ABI_DT_RELR": ("GLIBC", "2.36"), "GLIBC_ABI_GNU2_TLS": ("GLIBC", "2.42")}
"""Versions without a number, each with the release of glibc that first defines it (its NEWS)."""
_CUDART = re.compile(r"libcudart\.so\.(\d{1,9})")


@dataclass(frozen=True, slots=True)
class TorchSymbols:
    """The symbols of torch's interfaces that a library has to do with."""

    wanted: frozenset[str] = frozenset()
    """Those that another library must define."""
    defined: frozenset[str] = frozenset()
    """Those that it defines."""


_TORCH = re.compile(
    r"_Z[A-Z]*(?:N?[KVR]*)(?:2at|3c10|5torch|6caffe2|4c10d)|_Z\d+THP|aoti_torch_|torch_(?:call|library|get|set)"
)
"""The names of torch: its namespaces in C++, and the functions in C of its stable interface."""


def torch_symbols(data: bytes | mmap) -> TorchSymbols:
    """Return the symbols of torch's interfaces in a library; raises ElfFaultError for a damaged table."""
    found: tuple[set[str], set[str]] = (set(), set())
    for symbol in ElfFile(data).dynamic_symbols():
        if _TORCH.match(symbol.name) and (symbol.defined or not symbol.weak):
            found[symbol.defined].add(symbol.name)
    return TorchSymbols(*map(frozenset, found))


@dataclass(frozen=True, slots=True)
class AuditedFile:
    """A library."""

    path: str
    """Its place below the audited path."""
    elf: Elf | None
    """Its needs of the loader; None where it can't be read."""
    code: GpuCode = field(default_factory=GpuCode)
    """Its GPU code."""
    fault: str = ""
    """Why it can't be read; empty where it can."""
    torch: TorchSymbols | None = None
    """Its symbols of torch's interfaces; None where they were not asked for."""

    @property
    def symbols(self) -> dict[str, Version]:
        """The highest version of each family of symbols that it requires."""
        found: dict[str, Version] = {}
        for names in (self.elf.versions or {}).values() if self.elf else ():
            for name in names:
                match = _SYMBOL.fullmatch(name)
                family, text = _MARKERS.get(name) or (match.groups() if match else ("", ""))
                if family and (family not in found or Version(text) > found[family]):
                    found[family] = Version(text)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        elf = self.elf
        return {
            "path": self.path,
            "machine": elf.machine if elf else "",
            "soname": elf.soname if elf else "",
            "architectures": [f"sm_{code}" for code in self.code.cubin],
            "ptx": [f"compute_{code}" for code in self.code.ptx],
            "lto": [f"lto_{code}" for code in self.code.ir],
            "needs": {family: str(version) for family, version in sorted(self.symbols.items())},
            "symbols": {name: list(versions) for name, versions in ((elf.versions if elf else None) or {}).items()},
            "libraries": list(elf.needed) if elf else [],
            "rpath": list(elf.runpath or elf.rpath) if elf else [],
            "rpath_kind": ("RUNPATH" if elf.runpath else "RPATH" if elf.rpath else "") if elf else "",
            "cxx11_abi": elf.cxx_abi.value if elf else "",
            "fault": self.fault,
        }


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of all libraries together."""

    machines: tuple[str, ...]
    """The processors, by their `uname -m` names."""
    symbols: Mapping[str, tuple[Version, str]]
    """The highest version of each family of symbols, each with the library that requires it."""
    cuda: tuple[int, ...]
    """The major versions of the CUDA run time that they link."""
    code: tuple[AuditedFile, ...]
    """The libraries with GPU code."""
    own_libstdcxx: bool
    """Whether a libstdc++ is brought along."""


def inspect(tree: AuditedTree, *, torch: bool = False) -> list[AuditedFile]:
    """Return the libraries of an audited path, by their places; with their symbols of torch where asked for."""
    return sorted((_look(part, torch=torch) for part in tree.libraries()), key=lambda library: library.path)


def _look(part: TreePart, *, torch: bool) -> AuditedFile:
    if part.data is None:
        return AuditedFile(part.path, None, fault=part.fault)
    try:
        elf = read_elf(part.data)
    except ElfFaultError as error:
        return AuditedFile(part.path, None, fault=str(error))
    try:
        symbols = torch_symbols(part.data) if torch else None
        return AuditedFile(part.path, elf, gpu_code(part.data, elf), torch=symbols)
    except ElfFaultError as error:
        return AuditedFile(part.path, elf, fault=str(error))


def needs_of(libraries: Sequence[AuditedFile], names: Iterable[str]) -> Needs:
    """Return the needs of all libraries together.

    Args:
        libraries: The libraries.
        names: The names of all files that are brought along.
    """
    symbols: dict[str, tuple[Version, str]] = {}
    for library in libraries:
        for family, version in library.symbols.items():
            if family not in symbols or version > symbols[family][0]:
                symbols[family] = version, library.path
    elves = [library.elf for library in libraries if library.elf]
    linked = (_CUDART.match(name) for elf in elves for name in (*elf.needed, elf.soname))
    return Needs(
        machines=tuple(sorted({elf.machine for elf in elves})),
        symbols=symbols,
        cuda=tuple(sorted({int(match[1]) for match in linked if match})),
        code=tuple(library for library in libraries if library.code != GpuCode()),
        own_libstdcxx="libstdc++.so.6" in set(names),
    )


def mixed_abis(libraries: Sequence[AuditedFile]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the libraries of the old and of the new C++ ABI where both are there; two empty lists otherwise."""
    old = tuple(row.path for row in libraries if row.elf and row.elf.cxx_abi is CxxAbi.OLD)
    new = tuple(row.path for row in libraries if row.elf and row.elf.cxx_abi is CxxAbi.NEW)
    return (old, new) if old and new else ((), ())
