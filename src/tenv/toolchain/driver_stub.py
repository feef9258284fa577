"""Write a stub of the CUDA driver library for linking without an installed driver.

Programs that are linked with `-lcuda` need a `libcuda.so` that names the driver's functions. The real one is part of
the driver, which build hosts lack, and CUDA's wheels omit the stub of the toolkit's installer. So this module writes a
stub, with equal bytes on every host: an ELF shared object whose functions all return `CUDA_ERROR_STUB_LIBRARY`. At run
time, the loader finds the real library by the DT_SONAME.
"""

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate
from typing import assert_never

from tenv.core.dataclass import dataclass

STUB_ERROR = 34  # CUDA_ERROR_STUB_LIBRARY of cuda.h, which NVIDIA's own stub returns too

# One page of the largest size in use: aarch64 kernels may have pages of 64 KiB, and no page may have two protections.
_PAGE = 0x10000

# The names below come from the System V ABI.
_FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC = struct.Struct("<qQ")

_IDENT = b"\x7fELF" + bytes([2, 1, 1])  # ELFCLASS64, ELFDATA2LSB, EV_CURRENT; the rest is zero: ELFOSABI_NONE
_EV_CURRENT = 1
_ET_DYN = 3

_PT_LOAD, _PT_DYNAMIC, _PT_GNU_STACK = 1, 2, 0x6474E551
_PF_X, _PF_W, _PF_R = 1, 2, 4

_SHT_PROGBITS, _SHT_STRTAB, _SHT_HASH, _SHT_DYNAMIC, _SHT_DYNSYM = 1, 3, 5, 6, 11
_SHF_WRITE, _SHF_ALLOC, _SHF_EXECINSTR = 1, 2, 4

_DT_NULL, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT, _DT_SONAME = 0, 4, 5, 6, 10, 11, 14

_GLOBAL_FUNC = (1 << 4) | 2  # STB_GLOBAL, STT_FUNC
_STV_DEFAULT = 0

_SEGMENTS = 5  # three LOAD, DYNAMIC, GNU_STACK
_DYNAMIC_ENTRIES = 7

# The sections in the order of their headers, in which they also lie in the file; number 0 is the null section.
_SECTIONS = (".hash", ".dynsym", ".dynstr", ".text", ".dynamic", ".shstrtab")
_DYNSYM, _DYNSTR, _TEXT, _SHSTRTAB = (
    _SECTIONS.index(name) + 1 for name in (".dynsym", ".dynstr", ".text", ".shstrtab")
)

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\\\r?\n", re.DOTALL)


class ProcessorFamily(StrEnum):
    """A supported processor family, by its `uname -m` name."""

    X86_64 = "x86_64"
    AARCH64 = "aarch64"


@dataclass(frozen=True, slots=True)
class _Target:
    """The differences between machines: ELF's number (e_machine) and the code of the one function."""

    number: int
    code: bytes


@dataclass(frozen=True, slots=True)
class _Strings:
    """A string table and where in it each string begins."""

    data: bytes
    offsets: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Span:
    """Where a section lies: in the file, and in memory as part of the LOAD segment of that number."""

    offset: int
    size: int
    segment: int = 0

    @property
    def end(self) -> int:
        """The offset after the last byte."""
        return self.offset + self.size

    @property
    def address(self) -> int:
        """The address in memory, which equals the offset modulo a page, so that the file needs no padding to pages."""
        return self.offset + self.segment * _PAGE


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where everything lies in the file."""

    hash: _Span
    dynsym: _Span
    dynstr: _Span
    text: _Span
    dynamic: _Span
    shstrtab: _Span
    section_headers: _Span


def stub_library(soname: str, symbols: Iterable[str], machine: ProcessorFamily) -> bytes:
    """Return a shared object whose functions all return `STUB_ERROR`.

    Args:
        soname: Its DT_SONAME, which linked programs request from the loader.
        symbols: The exported functions in any order; duplicates count once.
        machine: The processor family of the programs.

    Returns:
        The file's bytes, which depend only on the arguments.
    """
    names = sorted(set(symbols))
    target = _target(machine)
    strings = _string_table((soname, *names))
    section_names = _string_table(_SECTIONS)
    table = _hash_table(names)
    layout = _lay_out(len(names), table, strings, target, section_names)
    parts = (
        (0, _file_header(layout, target)),
        (_FILE_HEADER.size, _program_headers(layout)),
        (layout.hash.offset, table),
        (layout.dynsym.offset, _symbol_table(names, strings, layout)),
        (layout.dynstr.offset, strings.data),
        (layout.text.offset, target.code),
        (layout.dynamic.offset, _dynamic(layout, strings.offsets[soname])),
        (layout.shstrtab.offset, section_names.data),
        (layout.section_headers.offset, _section_headers(layout, section_names)),
    )
    return _join(parts)


def declared_functions(header: str, prefix: str = "cu") -> frozenset[str]:
    """Return the functions that a program compiled with a header of the CUDA driver may link.

    Most of cuda.h's functions are renamed by macros (`#define cuMemAlloc cuMemAlloc_v2`), some of them by one that
    appends `_ptsz` or `_ptds` when the program wants a default stream per thread. Which branches of the header a
    program sees is not known here, so both sides of each rename, with and without the suffix, are returned.

    Args:
        header: The text of cuda.h, cudaGL.h, cudaProfiler.h and the like.
        prefix: The beginning of the functions' names, before a capital letter.
    """
    text = _COMMENT.sub(" ", header)
    name = rf"{re.escape(prefix)}[A-Z]\w*"
    found = set(re.findall(rf"\bCUresult\s+CUDAAPI\s+({name})\s*\(", text))
    rename = rf"^[ \t]*#[ \t]*define[ \t]+({name})[ \t]+(?:__CUDA_API_(PTSZ|PTDS)[ \t]*\([ \t]*)?({name})"
    for plain, suffix, renamed in re.findall(rename, text, re.MULTILINE):
        found |= {plain, renamed}
        if suffix:
            found.add(f"{renamed}_{suffix.lower()}")
    return frozenset(found)


def _target(machine: ProcessorFamily) -> _Target:
    match machine:
        case ProcessorFamily.X86_64:  # mov eax, imm32; ret
            return _Target(number=62, code=struct.pack("<BIB", 0xB8, STUB_ERROR, 0xC3))
        case ProcessorFamily.AARCH64:  # movz w0, imm16; ret
            return _Target(number=183, code=struct.pack("<II", 0x52800000 | STUB_ERROR << 5, 0xD65F03C0))
        case _:
            assert_never(machine)


def _string_table(names: Sequence[str]) -> _Strings:
    data = b"\0" + b"".join(name.encode("ascii") + b"\0" for name in names)
    starts = accumulate((len(name) + 1 for name in names), initial=1)
    return _Strings(data, dict(zip(names, starts, strict=False)))


def _hash(name: str) -> int:
    value = 0
    for byte in name.encode("ascii"):
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value


def _hash_table(names: Sequence[str]) -> bytes:
    # Each bucket heads a chain of symbol numbers; 0, the null symbol, ends it.
    buckets = [0] * max(1, len(names))
    chains = [0] * (len(names) + 1)
    for number, name in enumerate(names, 1):
        bucket = _hash(name) % len(buckets)
        chains[number], buckets[bucket] = buckets[bucket], number
    words = (len(buckets), len(chains), *buckets, *chains)
    return struct.pack(f"<{len(words)}I", *words)


def _lay_out(count: int, table: bytes, strings: _Strings, target: _Target, section_names: _Strings) -> _Layout:
    hash_ = _Span(_FILE_HEADER.size + _SEGMENTS * _PROGRAM_HEADER.size, len(table))
    dynsym = _Span(_align(hash_.end, 8), (count + 1) * _SYMBOL.size)
    dynstr = _Span(dynsym.end, len(strings.data))
    text = _Span(_align(dynstr.end, 16), len(target.code), segment=1)
    dynamic = _Span(_align(text.end, 8), _DYNAMIC_ENTRIES * _DYNAMIC.size, segment=2)
    shstrtab = _Span(dynamic.end, len(section_names.data))
    section_headers = _Span(_align(shstrtab.end, 8), (len(_SECTIONS) + 1) * _SECTION_HEADER.size)
    return _Layout(hash_, dynsym, dynstr, text, dynamic, shstrtab, section_headers)


def _align(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def _file_header(layout: _Layout, target: _Target) -> bytes:
    return _FILE_HEADER.pack(
        _IDENT,
        _ET_DYN,
        target.number,
        _EV_CURRENT,
        0,  # e_entry
        _FILE_HEADER.size,  # e_phoff
        layout.section_headers.offset,
        0,  # e_flags
        _FILE_HEADER.size,
        _PROGRAM_HEADER.size,
        _SEGMENTS,
        _SECTION_HEADER.size,
        len(_SECTIONS) + 1,
        _SHSTRTAB,
    )


def _program_headers(layout: _Layout) -> bytes:
    readable = _Span(0, layout.dynstr.end)  # the headers too: the loader finds them in memory
    return b"".join(
        (
            _program_header(_PT_LOAD, _PF_R, readable, _PAGE),
            _program_header(_PT_LOAD, _PF_R | _PF_X, layout.text, _PAGE),
            _program_header(_PT_LOAD, _PF_R | _PF_W, layout.dynamic, _PAGE),  # the loader writes addresses into it
            _program_header(_PT_DYNAMIC, _PF_R | _PF_W, layout.dynamic, 8),
            _program_header(_PT_GNU_STACK, _PF_R | _PF_W, _Span(0, 0), 16),  # not executable
        )
    )


def _program_header(kind: int, flags: int, span: _Span, align: int) -> bytes:
    return _PROGRAM_HEADER.pack(kind, flags, span.offset, span.address, span.address, span.size, span.size, align)


def _symbol_table(names: Sequence[str], strings: _Strings, layout: _Layout) -> bytes:
    # All functions do the same, so all of them are at the same address.
    return bytes(_SYMBOL.size) + b"".join(
        _SYMBOL.pack(strings.offsets[name], _GLOBAL_FUNC, _STV_DEFAULT, _TEXT, layout.text.address, layout.text.size)
        for name in names
    )


def _dynamic(layout: _Layout, soname: int) -> bytes:
    entries = (
        (_DT_SONAME, soname),
        (_DT_HASH, layout.hash.address),
        (_DT_STRTAB, layout.dynstr.address),
        (_DT_SYMTAB, layout.dynsym.address),
        (_DT_STRSZ, layout.dynstr.size),
        (_DT_SYMENT, _SYMBOL.size),
        (_DT_NULL, 0),
    )
    return b"".join(_DYNAMIC.pack(tag, value) for tag, value in entries)


def _section_headers(layout: _Layout, names: _Strings) -> bytes:
    # Type, flags, span, sh_link, sh_info, alignment, sh_entsize; the sh_info of .dynsym is its first global symbol.
    rows = (
        (_SHT_HASH, _SHF_ALLOC, layout.hash, _DYNSYM, 0, 8, 4),
        (_SHT_DYNSYM, _SHF_ALLOC, layout.dynsym, _DYNSTR, 1, 8, _SYMBOL.size),
        (_SHT_STRTAB, _SHF_ALLOC, layout.dynstr, 0, 0, 1, 0),
        (_SHT_PROGBITS, _SHF_ALLOC | _SHF_EXECINSTR, layout.text, 0, 0, 16, 0),
        (_SHT_DYNAMIC, _SHF_ALLOC | _SHF_WRITE, layout.dynamic, _DYNSTR, 0, 8, _DYNAMIC.size),
        (_SHT_STRTAB, 0, layout.shstrtab, 0, 0, 1, 0),
    )
    headers = [bytes(_SECTION_HEADER.size)]
    for name, (kind, flags, span, link, info, align, entry) in zip(_SECTIONS, rows, strict=True):
        address = span.address if flags & _SHF_ALLOC else 0
        fields = (kind, flags, address, span.offset, span.size, link, info, align, entry)
        headers.append(_SECTION_HEADER.pack(names.offsets[name], *fields))
    return b"".join(headers)


def _join(parts: Iterable[tuple[int, bytes]]) -> bytes:
    data = bytearray()
    for offset, part in parts:
        data += bytes(offset - len(data)) + part
    return bytes(data)
