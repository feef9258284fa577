"""Read which GPUs a library holds code for, from its fat binaries.

A fat binary is a header (magic, version, size of the header, size of what follows) and a list of images, each with a
header of its own: kind, size of header and payload, compute capability, flags. The payload, compressed (LZ4 or zstd) or
not, need not be read. NVIDIA does not publish the format; it was read off what nvcc 13.0 writes and what cuobjdump 13.5
prints of it, and holds for the files of nvcc 11.8 to 13.2.
"""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from tenv.core.dataclass import dataclass
from tenv.core.elf import Elf, ElfFaultError

if TYPE_CHECKING:
    from mmap import mmap

__all__ = ["SECTIONS", "GpuArch", "GpuCode", "gpu_code"]

SECTIONS = (".nv_fatbin", "__nv_relfatbin")
"""Where the linker collects fat binaries: of finished and of relocatable device code (-rdc)."""

_MAGIC = struct.pack("<IH", 0xBA55ED50, 1)
_CONTAINER = struct.Struct("<IHHQ")
_IMAGE = struct.Struct("<HHIQ12xI8xQ")  # kind, version, header, payload, ..., compute capability, ..., flags
_LEAST_IMAGE = 64
_PTX, _CUBIN, _IR = 1, 2, 8
_OF_ONE_ARCHITECTURE, _OF_A_FAMILY = 0x100000, 0x200000
_MOST_IMAGES = 1 << 22


class GpuArch(NamedTuple):
    """One kind of code.

    Attributes:
        number: The compute capability as nvcc writes it: 90 for 9.0, 120 for 12.0.
        suffix: ``a`` for code of this architecture alone, ``f`` for its family, else empty.
    """

    number: int
    suffix: str = ""

    def __str__(self) -> str:
        """Return it as in nvcc's options: ``90a``."""
        return f"{self.number}{self.suffix}"

    def runs_on(self, capability: int) -> bool:
        """Return whether machine code of this kind runs on a GPU of a compute capability.

        Source: CUDA C++ Programming Guide, chapter "Compute capability": the same major version and not a lower minor
        one; ``a`` exactly.
        """
        if self.suffix == "a":
            return capability == self.number
        return capability // 10 == self.number // 10 and capability >= self.number

    def compiles_for(self, capability: int) -> bool:
        """Return whether a driver makes machine code for a GPU of a compute capability from PTX of this kind."""
        return self.runs_on(capability) if self.suffix else capability >= self.number


@dataclass(frozen=True, slots=True)
class GpuCode:
    """The GPU code of a library.

    Attributes:
        cubin: The architectures of its machine code, rising.
        ptx: Those of its PTX.
        ir: Those of code that nvlink or nvJitLink finishes (LTO).
    """

    cubin: tuple[GpuArch, ...] = ()
    ptx: tuple[GpuArch, ...] = ()
    ir: tuple[GpuArch, ...] = ()

    def serves(self, capability: int) -> bool:
        """Return whether it runs on a GPU of this compute capability, at once or compiled by the driver."""
        return any(code.runs_on(capability) for code in self.cubin) or any(
            code.compiles_for(capability) for code in self.ptx
        )


def gpu_code(data: "bytes | mmap", elf: Elf) -> GpuCode:
    """Return the GPU code of a library; raises ElfFaultError for a fat binary that contradicts itself."""
    found: dict[int, set[GpuArch]] = {}
    for section in elf.sections:
        if section.name in SECTIONS:
            for kind, code in _images(data, section.offset, section.offset + section.size):
                found.setdefault(kind, set()).add(code)
    return GpuCode(*(tuple(sorted(found.get(kind, ()))) for kind in (_CUBIN, _PTX, _IR)))


def _images(data: "bytes | mmap", start: int, stop: int) -> Iterator[tuple[int, GpuArch]]:
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
