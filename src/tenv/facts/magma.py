"""The MAGMA binaries for PyTorch builds, and their CUDA versions."""

import re
from collections.abc import Mapping

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Table
from tenv.core.versions import Version
from tenv.facts.interface import Basis, required_version
from tenv.facts.table_files import Data

__all__ = ["CondaMagma", "MagmaTable", "MagmaTarballs", "read"]


@dataclass(frozen=True, slots=True)
class CondaMagma:
    """A package of the pytorch channel, all for linux-64.

    Attributes:
        name: Its name, ``magma-cuda121``.
        version: Its version.
        cuda: The CUDA minor version that its name means.
        basis: How certain this is.
    """

    name: str
    version: Version
    cuda: Version
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "CondaMagma":
        """Read one row of the data file; raises FactsError with the row's path."""
        name = row.required_text("name")
        match = re.fullmatch(r"magma-cuda(\d+)(\d)", name)
        if match is None:
            raise row.fail("name", f"expected a name such as magma-cuda121, got `{name}`")
        return cls(name, required_version(row, "version"), Version(f"{match[1]}.{match[2]}"), Basis.read(row, sources))


@dataclass(frozen=True, slots=True)
class MagmaTarballs:
    """The archives of PyTorch's own build images, outside package managers.

    Attributes:
        version: Their version.
        url_pattern: Their address, with ``{NODOT}`` for the CUDA version and ``{VERSION}`` for theirs.
        cudas: The CUDA minor versions of which one was seen.
        basis: How certain this is.
    """

    version: Version
    url_pattern: str
    cudas: tuple[Version, ...]
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "MagmaTarballs":
        """Read the table; raises FactsError with its path."""
        return cls(
            version=required_version(row, "version"),
            url_pattern=row.required_text("url_pattern"),
            cudas=tuple(Version(f"{text[:-1]}.{text[-1]}") for text in row.strings("cuda_seen")),
            basis=Basis.read(row, sources),
        )

    def url(self, cuda: Version) -> str:
        """Return the address of the archive for a CUDA version, whether or not one was seen there."""
        nodot = cuda.major_minor.replace(".", "")
        return self.url_pattern.replace("{NODOT}", nodot).replace("{VERSION}", self.version.text)


@dataclass(frozen=True, slots=True)
class MagmaTable:
    """Every row of the table that rules need.

    Attributes:
        conda: The packages of the pytorch channel, oldest CUDA and MAGMA first.
        tarballs: The archives of PyTorch's own build images.
    """

    conda: tuple[CondaMagma, ...]
    tarballs: MagmaTarballs

    def conda_for(self, cuda: Version) -> CondaMagma | None:
        """Return the newest package of the pytorch channel for a CUDA minor version, None if there is none."""
        rows = [row for row in self.conda if row.cuda.major_minor == cuda.major_minor]
        return rows[-1] if rows else None

    def has_tarball(self, cuda: Version) -> bool:
        """Return whether an archive for a CUDA minor version was seen."""
        return any(known.major_minor == cuda.major_minor for known in self.tarballs.cudas)


def read(data: Data) -> MagmaTable:
    """Build the table from its rows; raises FactsError if one is invalid."""
    conda = (CondaMagma.read(*row) for row in data.rows("conda_pytorch"))
    return MagmaTable(
        conda=tuple(sorted(conda, key=lambda row: (row.cuda, row.version))),
        tarballs=MagmaTarballs.read(*data.table("linux_tarball")),
    )
