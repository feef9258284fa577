"""The GPU architectures that a CUDA toolkit compiles for, the compute capabilities of GPUs, and their PCI ids."""

import re
from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, NamedTuple

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column
from tenv.core.versions import Version
from tenv.facts.interface import Basis, MinorVersion
from tenv.facts.table_files import Rows

_ID = re.compile(r"(?:0x)?([0-9a-f]{4})[:\s]*(?:0x)?([0-9a-f]{4})", re.IGNORECASE)
_ARCH = re.compile(r"(\d{1,3})\.(\d)([af]?)(\+PTX)?", re.IGNORECASE)


class GpuArch(NamedTuple):
    """One kind of code."""

    number: int
    """The compute capability as nvcc writes it: 90 for 9.0, 120 for 12.0."""
    suffix: str = ""
    """``a`` for code of this architecture alone, ``f`` for its family, else empty."""

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


def asked_codes(text: str) -> tuple[set[GpuArch], set[GpuArch]]:
    """Return the machine code and the PTX that a TORCH_CUDA_ARCH_LIST asks for; words such as ``Ampere`` are left out.

    Source: ``torch.utils.cpp_extension._get_cuda_arch_flags`` and cmake/Modules_CUDA_fix of PyTorch.
    """
    cubin, ptx = set(), set()
    for word in re.split(r"[;\s,]+", text):
        match = _ARCH.fullmatch(word)
        if match:
            code = GpuArch(int(match[1]) * 10 + int(match[2]), match[3].lower())
            cubin.add(code)
            ptx |= {code} if match[4] else set()
    return cubin, ptx


def unserved(asked: str, cubin: Collection[GpuArch], ptx: Collection[GpuArch]) -> tuple[GpuArch, ...]:
    """Return the architectures of a TORCH_CUDA_ARCH_LIST that neither machine code nor PTX serves, rising."""
    wanted, _ = asked_codes(asked)
    left = [code for code in sorted(wanted) if not any(one.runs_on(code.number) for one in cubin)]
    return tuple(code for code in left if not any(one.compiles_for(code.number) for one in ptx))


class GpuClass(StrEnum):
    """The product class of a GPU; only some classes support forward compatibility."""

    GEFORCE = "geforce"
    DATA_CENTRE = "data-centre"
    PROFESSIONAL = "professional"
    JETSON = "jetson"
    OTHER = "other"


def class_of(kind: str, name: str) -> GpuClass:
    """Return the product class of a GPU. A Titan counts as a GeForce, as in NVIDIA's list of brands.

    Args:
        kind: The series that a table gives it.
        name: Its marketing name.
    """
    if kind.startswith("GeForce") or "TITAN" in name:
        return GpuClass.GEFORCE
    classes = {"data centre": GpuClass.DATA_CENTRE, "pro": GpuClass.PROFESSIONAL, "Jetson": GpuClass.JETSON}
    return classes.get(kind, GpuClass.OTHER)


def sm_of(capability: Version) -> int:
    """Return a compute capability as nvcc names it: ``7.5`` is 75, ``12.0`` is 120."""
    return capability.major * 10 + capability.minor


@dataclass(frozen=True, slots=True)
class ToolkitArchs:
    """The architectures of one minor version of the CUDA toolkit."""

    major_minor: MinorVersion
    """The version of the toolkit."""
    sm: tuple[int, ...]
    """The real architectures that it compiles for, rising, in the notation of `sm_of`."""
    min: int
    """The lowest of them."""
    max: int
    """The highest of them."""
    variants: tuple[str, ...]
    """The architecture-specific (``90a``) and family-specific (``100f``) ones."""
    basis: Basis
    """How certain this is."""

    def supports(self, capability: Version) -> bool:
        """Return whether the toolkit compiles for exactly this compute capability."""
        return sm_of(capability) in self.sm

    def has_dropped(self, capability: Version) -> bool:
        """Return whether a GPU is older than all architectures of the toolkit."""
        return sm_of(capability) < self.min

    def is_older_than(self, capability: Version) -> bool:
        """Return whether a GPU is newer than all architectures of the toolkit."""
        return sm_of(capability) > self.max


@dataclass(frozen=True, slots=True)
class Family:
    """A generation of GPUs."""

    name: str
    """Its name."""
    capabilities: Annotated[tuple[Version, ...], Column("cc")]
    """The compute capabilities that belong to it."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class GpuModel:
    """A GPU."""

    name: str
    """Its marketing name."""
    capability: Annotated[Version, Column("cc")]
    """Its compute capability."""
    kind: str
    """The series that it is sold in."""
    basis: Basis
    """How certain this is."""

    @property
    def gpu_class(self) -> GpuClass:
        """Its product class."""
        return class_of(self.kind, self.name)


@dataclass(frozen=True, slots=True)
class GpuArchTable:
    """Every row of the table."""

    toolkits: Annotated[tuple[ToolkitArchs, ...], Rows("toolkit", by=lambda row: Version(row.major_minor))]
    """One row per minor version of the toolkit, oldest first."""
    families: Annotated[tuple[Family, ...], Rows("family")]
    """One row per generation of GPUs, oldest first."""
    gpus: Annotated[tuple[GpuModel, ...], Rows("gpu")]
    """One row per GPU."""

    def archs(self, cuda: Version) -> ToolkitArchs | None:
        """Return the architectures of a toolkit, None if the table has no row for its minor version."""
        wanted = cuda.major_minor
        return next((row for row in self.toolkits if row.major_minor == wanted), None)

    def range(self, capability: Version) -> tuple[ToolkitArchs, ToolkitArchs] | None:
        """Return the oldest and the newest toolkit of the table that compile for a compute capability."""
        rows = [row for row in self.toolkits if row.supports(capability)]
        return (rows[0], rows[-1]) if rows else None

    def family(self, capability: Version) -> Family | None:
        """Return the generation of GPUs that a compute capability belongs to."""
        return next((row for row in self.families if capability in row.capabilities), None)


@dataclass(frozen=True, slots=True)
class PciDevice:
    """A GPU on the PCI bus."""

    pci_id: Annotated[str, Column("id", read=lambda row, key: row.required_text(key).lower())]
    """Vendor and device, ``10de:2182``."""
    name: str
    """Its marketing name."""
    capability: Annotated[Version, Column("cc")]
    """The compute capability of its chip."""
    kind: str
    """The series that it is sold in, as in the table of GPUs."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class GpuPciTable:
    """Every row of the table."""

    devices: Annotated[tuple[PciDevice, ...], Rows("device")]
    """One row per device."""

    def device(self, pci_id: str) -> PciDevice | None:
        """Return the device of an id such as ``10de:2182`` or ``0x10de 0x2182``, None if the table has none."""
        match = _ID.fullmatch(pci_id.strip())
        wanted = f"{match[1]}:{match[2]}".lower() if match else ""
        return next((row for row in self.devices if row.pci_id == wanted), None)
