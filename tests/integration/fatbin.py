"""What GPUs a program holds code for, read from the file itself: the wheels bring no cuobjdump."""

import struct
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path

__all__ = ["Kind", "images"]

_MAGIC = struct.pack("<IH", 0xBA55ED50, 1)
_CONTAINER = struct.Struct("<IHHQ")  # magic, version, size of this header, size of the images after it
_IMAGE = struct.Struct("<HHIQ12xI")  # kind, version, size of this header, size of the code after it, ..., architecture


class Kind(IntEnum):
    """What an image holds."""

    PTX = 1
    CUBIN = 2


def images(section: Path) -> set[tuple[Kind, int]]:
    """Return the kind and the architecture (90 for sm_90) of each image in a ``.nv_fatbin`` section."""
    data = section.read_bytes()
    return set(_walk(data))


def _walk(data: bytes) -> Iterator[tuple[Kind, int]]:
    start = data.find(_MAGIC)
    while start >= 0:
        _, _, header, size = _CONTAINER.unpack_from(data, start)
        position = start + header
        end = position + size
        while position < end:
            kind, _, header, code, architecture = _IMAGE.unpack_from(data, position)
            yield Kind(kind), architecture
            position += header + code
        start = data.find(_MAGIC, end)
