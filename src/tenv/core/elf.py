"""Read ELF files: sections, and the values that the loader reads, from bytes that nobody vouches for.

The System V ABI (gabi, chapters 4 and 5) has the layout, and for symbol versions the Linux Standard Base.
Every offset is checked against the file, and every list has a limit, so that a hostile file ends with an error.
"""

import mmap
import os
import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tenv.core.dataclass import dataclass
from tenv.core.files import open_regular

MAGIC = b"\x7fELF"

_MOST_SECTIONS = 1 << 16
_MOST_ENTRIES = 1 << 16
"""The most entries of the dynamic section, and the most versions: libtorch has about 100 of either."""
_LONGEST_NAME = 4096
_MOST_SYMBOLS = 1 << 22
"""The most dynamic symbols that are read: libtorch_cpu has 300,000."""
_STB_WEAK = 2

_SHT_NOBITS, _SHT_DYNAMIC, _SHT_DYNSYM, _SHT_VERDEF, _SHT_VERNEED = 8, 6, 11, 0x6FFFFFFD, 0x6FFFFFFE
_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_STRTAB, _DT_STRSZ, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 5, 10, 14, 15, 29
_DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF
_VER_FLG_WEAK = 2
_NOTE = 12
"""Bytes in front of the name of a note."""
_MACHINES = {3: "i686", 62: "x86_64", 183: "aarch64", 21: "ppc64le", 22: "s390x", 243: "riscv64", 40: "armv7l"}

_NEW = re.compile(rb"St7__cxx11|B5cxx11")
_OLD = re.compile(rb"\0_ZNK?Ss")
_MAYBE_OLD = re.compile(rb"\0(_ZN(?:2at|3c10|5torch|6caffe2)[^\0]{0,4000}?Ss[^\0]*)")
"""The mangled ``std::string`` before GCC 5's ABI is ``Ss``: as a class of its own, or among a function's arguments."""
_LENGTH = re.compile(rb"\d+")


class ElfFaultError(ValueError):
    """A file is no ELF file that can be read, with the reason."""


class CxxAbi(StrEnum):
    """Which ``std::string`` the symbols of a library name (_GLIBCXX_USE_CXX11_ABI)."""

    NEW = "1"
    OLD = "0"
    BOTH = "both"
    NONE = ""


class ElfSection(NamedTuple):
    """A section of a file."""

    name: str
    """Its name."""
    kind: int
    """Its ``sh_type``."""
    offset: int
    """Where it begins, in bytes."""
    size: int
    """Its size in bytes; 0 where the file holds nothing of it."""
    link: int
    """The number of the section that it refers to."""


class DynamicSymbol(NamedTuple):
    """A symbol that the loader binds."""

    name: str
    """Its name, mangled."""
    defined: bool
    """Whether the file has it; else another library must."""
    weak: bool
    """Whether the loader goes on without it."""


@dataclass(frozen=True, slots=True)
class Elf:
    """The values of a file that the loader reads."""

    machine: str
    """The processor by its `uname -m` name; its number where that is not known."""
    sections: tuple[ElfSection, ...]
    """Its sections; empty where they were stripped."""
    soname: str = ""
    """Its own name; empty for none."""
    needed: tuple[str, ...] = ()
    """The libraries that it needs, in order."""
    rpath: tuple[str, ...] = ()
    """The folders of DT_RPATH."""
    runpath: tuple[str, ...] = ()
    """The folders of DT_RUNPATH, for which the loader ignores DT_RPATH."""
    versions: Mapping[str, tuple[str, ...]] | None = None
    """The symbol versions that it requires, by library."""
    cxx_abi: CxxAbi = CxxAbi.NONE
    """The ABI of the C++ library's strings in its symbols."""


def read_elf(data: bytes | mmap.mmap) -> Elf:
    """Return the values of an ELF file that the loader reads.

    Raises:
        ElfFaultError: It is truncated, contradicts itself, or holds more than any library does.
    """
    file = ElfFile(data)
    return Elf(
        machine=file.machine,
        sections=file.sections,
        soname=next(iter(file.texts(_DT_SONAME)), ""),
        needed=file.needed,
        rpath=file.rpath,
        runpath=file.runpath,
        versions=file.required_versions(),
        cxx_abi=_abi(file.strings),
    )


@contextmanager
def open_elf(path: Path) -> Iterator["ElfFile"]:
    """Open an ELF file.

    Raises:
        OSError: The file can't be read.
        ElfFaultError: It is no ELF file.
    """
    with open_regular(path) as file:
        if not os.fstat(file.fileno()).st_size:
            raise ElfFaultError("the file is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield ElfFile(data)


class ElfFile:
    """An open ELF file; each method and attribute but the first three may raise ElfFaultError.

    Attributes:
        machine: The processor by its `uname -m` name; its number where that is not known.
        wide: Whether it is a 64-bit file.
        order: Its byte order, in the terms of struct.
    """

    def __init__(self, data: bytes | mmap.mmap) -> None:
        ident = data[:16]
        if len(ident) < 16 or ident[:4] != MAGIC or ident[4] not in (1, 2) or ident[5] not in (1, 2):  # noqa: PLR2004
            raise ElfFaultError("the file has no ELF header")
        self.data = data
        self.size = len(data)
        self.wide = ident[4] == 2  # noqa: PLR2004 (ELFCLASS64)
        self.order = "<" if ident[5] == 1 else ">"
        self.word = "Q" if self.wide else "I"
        header = "HHI" + self.word * 3 + "IHHHHHH"
        row = self.unpack(header, 16)
        _, machine, _, _, self.phoff, self.shoff, _, _, self.phsize, self.phnum, self.shsize, self.shnum, self.names = (
            row
        )
        self.machine = _MACHINES.get(machine, str(machine))

    def unpack(self, layout: str, offset: int) -> tuple[int, ...]:
        """Return the numbers at a place."""
        if offset < 0 or offset > self.size:
            raise ElfFaultError(f"an offset of {offset} is past the end of the file ({self.size} bytes)")
        try:
            return struct.unpack_from(self.order + layout, self.data, offset)
        except struct.error as error:
            raise ElfFaultError(f"the file is truncated or damaged ({error})") from error

    def section(self, name: str) -> bytes:
        """Return the content of the first section of a name; empty without one."""
        found = next((section for section in self.sections if section.name == name), None)
        return self._bytes(found.offset, found.size) if found else b""

    @property
    def build_id(self) -> str:
        """The hex digits by which files of debug information are found; empty without such a note."""
        note = self.section(".note.gnu.build-id")
        if len(note) < _NOTE:
            return ""
        name, size, _ = struct.unpack_from(f"{self.order}III", note)
        start = _NOTE + (name + 3 & ~3)
        return note[start : start + size].hex()

    @property
    def needed(self) -> tuple[str, ...]:
        """The libraries that it needs, in order."""
        return self.texts(_DT_NEEDED)

    @property
    def rpath(self) -> tuple[str, ...]:
        """The folders of DT_RPATH."""
        return self._folders(_DT_RPATH)

    @property
    def runpath(self) -> tuple[str, ...]:
        """The folders of DT_RUNPATH."""
        return self._folders(_DT_RUNPATH)

    def texts(self, tag: int) -> tuple[str, ...]:
        """Return the texts of the dynamic section with a tag."""
        return tuple(_text(self.strings, value) for kind, value in self._rows if kind == tag)

    def _folders(self, tag: int) -> tuple[str, ...]:
        return tuple(folder for text in self.texts(tag) for folder in text.split(":") if folder)

    def required_versions(self) -> dict[str, tuple[str, ...]]:
        """Return the symbol versions without which the loader refuses the file, by library."""
        required: dict[str, list[str]] = {}
        for library, name in self._versions(self._places[2], self.strings):
            required.setdefault(library, []).append(name)
        return {library: tuple(names) for library, names in required.items()}

    def defined_versions(self) -> tuple[str, ...]:
        """Return the symbol versions that a library defines (``.gnu.version_d``): the first name of each entry."""
        section = next((section for section in self.sections if section.kind == _SHT_VERDEF), None)
        if section is None:
            return ()
        if section.link >= len(self.sections):
            raise ElfFaultError("the defined versions name strings that are not there")
        linked = self.sections[section.link]
        strings, names, at = self._bytes(linked.offset, linked.size), list[str](), section.offset
        while len(names) < _MOST_ENTRIES:
            auxiliary, following = self.unpack("II", at + 12)
            names.append(_text(strings, *self.unpack("I", at + auxiliary)))
            if not following:
                return tuple(names)
            at += following
        raise ElfFaultError("the list of defined versions does not end")

    def dynamic_symbols(self) -> Iterator[DynamicSymbol]:
        """Yield the symbols that the loader binds, in the order of the file."""
        section = next((section for section in self.sections if section.kind == _SHT_DYNSYM), None)
        if section is None:
            return
        if section.link >= len(self.sections):
            raise ElfFaultError("the dynamic symbols name strings that are not there")
        linked = self.sections[section.link]
        strings, rows = self._bytes(linked.offset, linked.size), self._bytes(section.offset, section.size)
        layout = struct.Struct(self.order + ("IBBHQQ" if self.wide else "IIIBBH"))
        if len(rows) // layout.size > _MOST_SYMBOLS:
            raise ElfFaultError(f"{len(rows) // layout.size} symbols are more than any library has")
        for row in layout.iter_unpack(rows[: len(rows) // layout.size * layout.size]):
            name, info, index = (row[0], row[1], row[3]) if self.wide else (row[0], row[3], row[5])
            if name:
                yield DynamicSymbol(_text(strings, name), index != 0, info >> 4 == _STB_WEAK)

    @cached_property
    def strings(self) -> bytes:
        """The strings of the dynamic section."""
        return self._bytes(*self._places[1])

    @cached_property
    def _rows(self) -> list[tuple[int, int]]:
        dynamic = self._places[0]
        return list(self._dynamic(*dynamic)) if dynamic[1] else []

    @cached_property
    def sections(self) -> tuple[ElfSection, ...]:
        """Its sections; empty where they were stripped."""
        if not self.shoff or not self.shsize:
            return ()
        layout = "II" + self.word * 4 + "II" + self.word * 2
        if self.shsize < struct.calcsize(self.order + layout):
            raise ElfFaultError(f"a section header of {self.shsize} bytes is too small")
        count = self.shnum
        if count == 0:  # more than fit in the field: the first header has the number
            count = self.unpack(layout, self.shoff)[5]
        if count > _MOST_SECTIONS:
            raise ElfFaultError(f"{count} sections are more than any library has")
        rows = [self.unpack(layout, self.shoff + number * self.shsize) for number in range(count)]
        if not rows:
            return ()
        names = b""
        if self.names < len(rows):
            names = self._bytes(rows[self.names][4], rows[self.names][5])
        return tuple(self._section(row, names) for row in rows)

    def _section(self, row: tuple[int, ...], names: bytes) -> ElfSection:
        at, kind, _, _, offset, size, link, *_ = row
        if kind in (_SHT_NOBITS, 0):
            size = 0
        elif offset + size > self.size:
            raise ElfFaultError(f"a section ends at byte {offset + size}, the file at {self.size}")
        return ElfSection(_text(names, at) if at < len(names) else "", kind, offset, size, link)

    def _bytes(self, offset: int, size: int) -> bytes:
        if offset + size > self.size:
            raise ElfFaultError(f"a table ends at byte {offset + size}, the file at {self.size}")
        return self.data[offset : offset + size]

    @cached_property
    def _places(self) -> tuple[tuple[int, int], tuple[int, int], int]:
        """The places of the dynamic section, its strings and the required versions (0 for none of these)."""
        sections = self.sections
        dynamic = next((row for row in sections if row.kind == _SHT_DYNAMIC), None)
        if dynamic is None:
            return self._loaded()
        if dynamic.link >= len(sections):
            raise ElfFaultError("the dynamic section names strings that are not there")
        strings = sections[dynamic.link]
        versions = next((row.offset for row in sections if row.kind == _SHT_VERNEED), 0)
        return (dynamic.offset, dynamic.size), (strings.offset, strings.size), versions

    def _loaded(self) -> tuple[tuple[int, int], tuple[int, int], int]:
        """Return the same from the program headers: a file may come without sections."""
        layout = "IIQQQQQQ" if self.wide else "IIIIIIII"
        segments = []
        for number in range(min(self.phnum, _MOST_SECTIONS) if self.phoff else 0):
            row = self.unpack(layout, self.phoff + number * self.phsize)
            kind, offset, address, size = (
                (row[0], row[2], row[3], row[5]) if self.wide else (row[0], row[1], row[2], row[4])
            )
            segments.append((kind, offset, address, size))
        dynamic = next(((offset, size) for kind, offset, _, size in segments if kind == _PT_DYNAMIC), (0, 0))
        tags = dict(self._dynamic(*dynamic)) if dynamic[1] else {}

        def place(address: int) -> int:
            for kind, offset, start, size in segments:
                if kind == _PT_LOAD and start <= address < start + size:
                    return offset + address - start
            raise ElfFaultError(f"no segment holds the address {address:#x}")

        strings = (place(tags[_DT_STRTAB]), tags.get(_DT_STRSZ, 0)) if _DT_STRTAB in tags else (0, 0)
        versions = place(tags[_DT_VERNEED]) if tags.get(_DT_VERNEEDNUM) and _DT_VERNEED in tags else 0
        return dynamic, strings, versions

    def _dynamic(self, offset: int, size: int) -> Iterator[tuple[int, int]]:
        width = 16 if self.wide else 8
        if size // width > _MOST_ENTRIES:
            raise ElfFaultError(f"{size // width} dynamic entries are more than any library has")
        for number in range(size // width):
            tag, value = self.unpack(self.word * 2, offset + number * width)
            if tag == 0:
                return
            yield tag, value

    def _versions(self, offset: int, strings: bytes) -> Iterator[tuple[str, str]]:
        """Yield the versions that a missing symbol would make the loader refuse, each with its library."""
        left = _MOST_ENTRIES
        while offset:
            _, _, file, first, following = self.unpack("HHIII", offset)
            library, at = _text(strings, file), offset + first
            while left > 0:
                left -= 1
                _, flags, _, name, forward = self.unpack("IHHII", at)
                if not flags & _VER_FLG_WEAK:
                    yield library, _text(strings, name)
                if not forward:
                    break
                at += forward
            if left <= 0:
                raise ElfFaultError("the list of required versions does not end")
            offset = offset + following if following else 0


def _text(strings: bytes, offset: int) -> str:
    end = strings.find(b"\0", offset, offset + _LONGEST_NAME)
    if offset >= len(strings) or end < 0:
        raise ElfFaultError(f"a name at {offset} is outside its table")
    return strings[offset:end].decode("utf-8", "replace")


def _abi(strings: bytes) -> CxxAbi:
    new = _NEW.search(strings) is not None
    old = _OLD.search(strings) is not None or any(
        b"Ss" in _without_names(match[1]) for match in _MAYBE_OLD.finditer(strings)
    )
    return CxxAbi.BOTH if new and old else CxxAbi.NEW if new else CxxAbi.OLD if old else CxxAbi.NONE


def _without_names(symbol: bytes) -> bytes:
    """Return a mangled symbol without its identifiers, each of which follows its length: they may have ``Ss`` too."""
    kept, at = b"", 0
    while match := _LENGTH.search(symbol, at):
        kept += symbol[at : match.start()]
        at = match.end() + int(match[0][:6])
    return kept + symbol[at:]
