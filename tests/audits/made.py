"""Libraries and wheels that an audit reads, made byte by byte."""

import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.elf import with_symbols, write_elf

__all__ = ["fatbin", "library", "wheel"]

PTX, CUBIN, LTO = 1, 2, 8


def fatbin(*images: tuple[int, int], flags: int = 0x11, payload: bytes = b"code") -> bytes:
    """Return a fat binary of images, each of a kind and a compute capability."""
    rows = b""
    for kind, number in images:
        body = payload + bytes(-len(payload) % 8)
        rows += struct.pack("<HHIQ12xI8xQ16x", kind, 0x101, 64, len(body), number, flags) + body
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(rows)) + rows


def library(
    path: Path,
    needed: Sequence[str] = (),
    *,
    runpath: str = "",
    rpath: str = "",
    soname: str = "",
    versions: Mapping[str, Sequence[str]] | None = None,
    symbols: Sequence[str] = (),
    wanted: Sequence[str] = (),
    defined: Sequence[str] = (),
    code: bytes = b"",
    relocatable: bytes = b"",
) -> Path:
    """Write a library of sections."""
    strings = bytearray(b"\0")

    def at(text: str) -> int:
        strings.extend(text.encode() + b"\0")
        return len(strings) - len(text) - 1

    tags = [(1, name) for name in needed]
    tags += [(tag, text) for tag, text in ((14, soname), (15, rpath), (29, runpath)) if text]
    rows = [struct.pack("<QQ", tag, at(text)) for tag, text in tags]
    required = list((versions or {}).items())
    table = bytearray()
    for number, (name, names) in enumerate(required):
        size = 16 + 16 * len(names)
        last = number == len(required) - 1
        table += struct.pack("<HHIII", 1, len(names), at(name), 16, 0 if last else size)
        for place, version in enumerate(names):
            table += struct.pack("<IHHII", 0, 0, 2, at(version), 0 if place == len(names) - 1 else 16)
    for symbol in symbols:
        at(symbol)
    sections = {".dynstr": bytes(strings), ".dynamic": b"".join([*rows, struct.pack("<QQ", 0, 0)])}
    sections |= {".gnu.version_r": bytes(table)} if table else {}
    sections |= {".nv_fatbin": code} if code else {}
    sections |= {"__nv_relfatbin": relocatable} if relocatable else {}
    return write_elf(path, with_symbols(sections, wanted, defined) if wanted or defined else sections)


def wheel(path: Path, files: Mapping[str, bytes | Path]) -> Path:
    """Write a wheel of files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content.read_bytes() if isinstance(content, Path) else content)
    return path
