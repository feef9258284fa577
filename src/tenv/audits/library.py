"""What is said of one library, and of all of them together."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from tenv.audits.audited_tree import AuditedTree, TreePart
from tenv.audits.fatbin import GpuCode, gpu_code
from tenv.core.dataclass import dataclass
from tenv.core.elf import CxxAbi, Elf, ElfFaultError, read_elf
from tenv.core.versions import Version

__all__ = ["AuditedFile", "Needs", "inspect", "mixed_abis", "needs_of"]

_SYMBOL = re.compile(r"(GLIBC|GLIBCXX|CXXABI|GCC)_(\d+(?:\.\d+)*)")
_MARKERS = {"GLIBC_ABI_DT_RELR": ("GLIBC", "2.36"), "GLIBC_ABI_GNU2_TLS": ("GLIBC", "2.42")}
"""Versions without a number, each with the release of glibc that first defines it (its NEWS)."""
_CUDART = re.compile(r"libcudart\.so\.(\d+)")


@dataclass(frozen=True, slots=True)
class AuditedFile:
    """A library.

    Attributes:
        path: Where it is, below what is audited.
        elf: What it asks of the loader; None where it can't be read.
        code: Its GPU code.
        fault: Why it can't be read; empty where it can.
    """

    path: str
    elf: Elf | None
    code: GpuCode = field(default_factory=GpuCode)
    fault: str = ""

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
    """What all libraries together ask of a machine.

    Attributes:
        machines: The processors, by their `uname -m` names.
        symbols: The highest version of each family of symbols, each with the library that requires it.
        cuda: The major versions of the CUDA run time that they link.
        code: The libraries with GPU code.
        own_libstdcxx: Whether a libstdc++ is brought along.
    """

    machines: tuple[str, ...]
    symbols: Mapping[str, tuple[Version, str]]
    cuda: tuple[int, ...]
    code: tuple[AuditedFile, ...]
    own_libstdcxx: bool


def inspect(tree: AuditedTree) -> list[AuditedFile]:
    """Return the libraries of what is audited, by path."""
    return sorted(map(_look, tree.libraries()), key=lambda library: library.path)


def _look(part: TreePart) -> AuditedFile:
    if part.data is None:
        return AuditedFile(part.path, None, fault=part.fault)
    try:
        elf = read_elf(part.data)
    except ElfFaultError as error:
        return AuditedFile(part.path, None, fault=str(error))
    try:
        return AuditedFile(part.path, elf, gpu_code(part.data, elf))
    except ElfFaultError as error:
        return AuditedFile(part.path, elf, fault=str(error))


def needs_of(libraries: Sequence[AuditedFile], names: Iterable[str]) -> Needs:
    """Return what libraries together ask of a machine.

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
