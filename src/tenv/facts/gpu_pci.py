"""The GPU of a PCI device id, for a host without a driver."""

import re
from collections.abc import Mapping

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Table
from tenv.core.versions import Version
from tenv.facts.interface import Basis, required_version
from tenv.facts.table_files import Data

__all__ = ["GpuPciTable", "PciDevice", "read"]

_ID = re.compile(r"(?:0x)?([0-9a-f]{4})[:\s]*(?:0x)?([0-9a-f]{4})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PciDevice:
    """A GPU on the PCI bus.

    Attributes:
        pci_id: Vendor and device, ``10de:2182``.
        name: Its marketing name.
        capability: The compute capability of its chip.
        kind: The series that it is sold in, as in the table of GPUs.
        basis: How certain this is.
    """

    pci_id: str
    name: str
    capability: Version
    kind: str
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "PciDevice":
        """Read one row of the data file; raises FactsError with the row's path."""
        return cls(
            pci_id=row.required_text("id").lower(),
            name=row.required_text("name"),
            capability=required_version(row, "cc"),
            kind=row.required_text("kind"),
            basis=Basis.read(row, sources),
        )


@dataclass(frozen=True, slots=True)
class GpuPciTable:
    """Every row of the table.

    Attributes:
        devices: One row per device.
    """

    devices: tuple[PciDevice, ...]

    def device(self, pci_id: str) -> PciDevice | None:
        """Return the device of an id such as ``10de:2182`` or ``0x10de 0x2182``, None if the table has none."""
        match = _ID.fullmatch(pci_id.strip())
        wanted = f"{match[1]}:{match[2]}".lower() if match else ""
        return next((row for row in self.devices if row.pci_id == wanted), None)


def read(data: Data) -> GpuPciTable:
    """Build the table from its rows; raises FactsError if one is invalid."""
    return GpuPciTable(tuple(PciDevice.read(*row) for row in data.rows("device")))
