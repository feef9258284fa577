"""The smallest ELF files that a reader of sections takes for programs."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["build_id", "dynamic", "with_symbols", "write_elf"]

_HEADER, _ROW = 64, 64
_TYPES = {".dynstr": 3, ".dynamic": 6, ".dynsym": 11, ".note.gnu.build-id": 7, ".gnu.version_r": 0x6FFFFFFE}


def build_id(digits: str) -> bytes:
    """Return the content of a `.note.gnu.build-id` section."""
    raw = bytes.fromhex(digits)
    return struct.pack("<III", 4, len(raw), 3) + b"GNU\0" + raw


def dynamic(needed: Sequence[str], runpath: str = "") -> dict[str, bytes]:
    """Return the sections that name the libraries which a program needs."""
    texts, rows = b"\0", []
    for tag, text in [*((1, name) for name in needed), *([(29, runpath)] if runpath else [])]:
        rows.append(struct.pack("<QQ", tag, len(texts)))
        texts += text.encode() + b"\0"
    return {".dynstr": texts, ".dynamic": b"".join([*rows, struct.pack("<QQ", 0, 0)])}


def with_symbols(sections: Mapping[str, bytes], wanted: Sequence[str], defined: Sequence[str]) -> dict[str, bytes]:
    """Return sections with a table of dynamic symbols: those that another library must define, and its own."""
    texts, rows = sections[".dynstr"], [bytes(24)]
    for number, name in enumerate((*wanted, *defined)):
        rows.append(struct.pack("<IBBHQQ", len(texts), 0x12, 0, int(number >= len(wanted)), 0, 0))
        texts += name.encode() + b"\0"
    return {**sections, ".dynstr": texts, ".dynsym": b"".join(rows)}


def write_elf(path: Path, sections: Mapping[str, bytes]) -> Path:
    """Write a program of these sections."""
    names = ["", *sections, ".shstrtab"]
    texts = "\0".join(names).encode() + b"\0"
    datas = [b"", *sections.values(), texts]
    body, rows = b"", []
    for name, data in zip(names, datas, strict=True):
        kind = 0 if not name else 3 if name == ".shstrtab" else _TYPES.get(name, 1)
        link = names.index(".dynstr") if name in (".dynamic", ".dynsym", ".gnu.version_r") else 0
        size = {".dynamic": 16, ".dynsym": 24}.get(name, 0)
        at = texts.index(b"\0" + name.encode() + b"\0") + 1 if name else 0
        rows.append(struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, _HEADER + len(body), len(data), link, 0, 1, size))
        body += data
    start = _HEADER + len(body)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, start, 0, _HEADER, 0, 0, _ROW, len(rows), len(rows) - 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header + body + b"".join(rows))
    return path
