"""What wheels of NVIDIA hold, laid out and packed as the archives on NVIDIA's server are."""

import shutil
import zipfile
import zlib
from pathlib import Path

from tests.integration.bench import check

__all__ = ["from_wheel", "pack"]

LARGE = 16 << 20
"""The size of a library in a wheel, in bytes, above which its first MiB is taken: no test links it."""


def from_wheel(wheel: Path, part: str, top: Path) -> None:
    """Lay what a wheel holds out as an archive of NVIDIA is; of a library above `LARGE` the first MiB."""
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            name = entry.filename
            if name.startswith(f"{part}/") and not name.endswith(("/", ".py")):
                place = top / name.removeprefix(f"{part}/")
                place.parent.mkdir(parents=True, exist_ok=True)
                place.touch(0o755 if "/bin/" in name else 0o644)
                with archive.open(entry) as source:
                    place.write_bytes(source.read(1 << 20 if entry.file_size > LARGE and "/lib/" in name else -1))
    for library in sorted(top.glob("lib/*.so.*")):
        library.with_name(library.name.partition(".so")[0] + ".so").symlink_to(library.name)


def pack(top: Path, file: Path) -> None:
    """Pack a folder as the one top folder of an archive."""
    (top / "LICENSE").write_text("the license of NVIDIA\n")
    plain = file.with_suffix("")
    check(["tar", "-c", "-f", plain, "-C", top.parent, top.name], top.parent)
    shutil.rmtree(top)
    if file.suffix == ".xz":
        store_xz(plain, file)
    else:
        check(["bzip2", "-1", plain], plain.parent)
    plain.unlink(missing_ok=True)


def store_xz(plain: Path, file: Path) -> None:
    """Write a file as an .xz of one block whose chunks are stored: compressing a gigabyte would take a minute.

    See "The .xz File Format" (tukaani.org): LZMA2 has chunks of up to 64 KiB without compression.
    """

    def framed(data: bytes) -> bytes:
        return data + zlib.crc32(data).to_bytes(4, "little")

    def number(value: int) -> bytes:
        out = bytearray()
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes([*out, value])

    flags = b"\0\1"  # a CRC32 of each block
    head = framed(b"\2\0\x21\1\0\0\0\0")  # one filter: LZMA2 with the smallest dictionary
    size, crc, packed, kind = 0, 0, len(head), b"\1"  # the first chunk resets the dictionary
    with plain.open("rb") as source, file.open("wb") as out:
        out.write(b"\xfd7zXZ\0" + framed(flags) + head)
        while chunk := source.read(1 << 16):
            out.write(kind + (len(chunk) - 1).to_bytes(2, "big") + chunk)
            size, crc, packed, kind = size + len(chunk), zlib.crc32(chunk, crc), packed + len(chunk) + 3, b"\2"
        packed += 1
        out.write(b"\0" + bytes(-packed % 4) + crc.to_bytes(4, "little"))
        index = b"\0\1" + number(packed + 4) + number(size)
        index = framed(index + bytes(-len(index) % 4))
        back = (len(index) // 4 - 1).to_bytes(4, "little") + flags
        out.write(index + zlib.crc32(back).to_bytes(4, "little") + back + b"YZ")
