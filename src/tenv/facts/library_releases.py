"""The releases of cuDNN, cuSPARSELt and MAGMA, their CUDA versions, and those that PyTorch uses."""

import re
from collections.abc import Iterable
from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column, Table
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.table_files import Data


def _cuda_major(row: Table, key: str) -> int | None:
    return row.parsed(key, lambda text: int(text.removeprefix("cuda")), None)


@dataclass(frozen=True, slots=True)
class RedistArchive:
    """One archive."""

    version: Version
    """The version of the library."""
    platform: str
    """NVIDIA's name of the platform (``linux-x86_64``, ``linux-sbsa``)."""
    cuda_major: Annotated[int | None, Column("cuda", read=_cuda_major)]
    """The CUDA major version that it is made for; None for an archive of no particular one."""
    url: str
    """Where it is."""
    sha256: str
    """Its digest."""
    size: int | None
    """Its size in bytes; None if it is not known."""
    basis: Basis
    """How certain this is."""


def _releases(archives: Iterable[RedistArchive], platform: str | None = None) -> tuple[Version, ...]:
    """Return the versions of which there are archives, rising.

    Args:
        archives: The archives.
        platform: The platform of the archives; None for all.
    """
    return tuple(sorted({row.version for row in archives if platform in (None, row.platform)}))


def _archives(data: Data) -> tuple[RedistArchive, ...]:
    """Return the archives of a table, oldest first; a row has its whole URL, or a path below the table's base."""
    rows = [
        row.read(RedistArchive, url=row.table.text("url") or data.base + row.table.required_text("relative_path"))
        for row in data.sections["archive"]
    ]
    return tuple(sorted(rows, key=lambda row: row.version))


@dataclass(frozen=True, slots=True)
class CudnnTable:
    """Every row of the table."""

    archives: tuple[RedistArchive, ...]
    """One row per version, platform and CUDA major version, oldest first."""

    def versions(self, platform: str | None = None) -> tuple[Version, ...]:
        """Return the known versions, rising; those with an archive for NVIDIA's `platform` when it is given."""
        return _releases(self.archives, platform)


def read_cudnn(data: Data) -> CudnnTable:
    """Build the table of cuDNN from its rows; raises FactsError if one is invalid."""
    return CudnnTable(_archives(data))


def _first(row: Table, key: str) -> Version:
    return _bound(row, key, row.required_text(key).partition("-")[0])


def _last(row: Table, key: str) -> Version:
    return _bound(row, key, row.required_text(key).rpartition("-")[2])


def _bound(row: Table, key: str, text: str) -> Version:
    try:
        return Version(text)
    except ValueError as error:
        raise row.fail(key, f"expected a version or a range such as 12.2-12.6: {error}") from error


def _required_version(row: Table, key: str) -> Version:
    try:
        return Version(row.required_text(key).partition(" ")[2])
    except ValueError as error:
        raise row.fail(key, f"expected a package and its version: {error}") from error


@dataclass(frozen=True, slots=True)
class CiPairing:
    """The cuSPARSELt that PyTorch's own build images take for a range of CUDA versions."""

    first: Annotated[Version, Column("cuda", read=_first)]
    """The first minor version of CUDA."""
    last: Annotated[Version, Column("cuda", read=_last)]
    """The last one."""
    version: Version
    """The version of cuSPARSELt."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class WheelPairing:
    """The cuSPARSELt that a PyTorch wheel requires."""

    torch: Version
    """The release of PyTorch."""
    package: Annotated[str, Column("requires", read=lambda row, key: row.text(key).partition(" ")[0])]
    """The package that it requires, ``nvidia-cusparselt-cu13``."""
    version: Annotated[Version, Column("requires", read=_required_version)]
    """The version of it."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class CusparseltTable:
    """Every row of the table."""

    archives: tuple[RedistArchive, ...]
    """One row per version, platform and CUDA major version, oldest first."""
    ci: tuple[CiPairing, ...]
    """The releases in PyTorch's own build images."""
    wheels: tuple[WheelPairing, ...]
    """The releases that PyTorch's wheels require, oldest first."""

    def versions(self, platform: str | None = None) -> tuple[Version, ...]:
        """Return the known versions, rising; those with an archive for NVIDIA's `platform` when it is given."""
        return _releases(self.archives, platform)

    def for_cuda(self, cuda: Version) -> CiPairing | None:
        """Return the release in PyTorch's own build images for a CUDA version; None if the table has none."""
        minor = Version(cuda.major_minor)
        return next((row for row in self.ci if row.first <= minor <= row.last), None)


def read_cusparselt(data: Data) -> CusparseltTable:
    """Build the table of cuSPARSELt from its rows; raises FactsError if one is invalid."""
    return CusparseltTable(
        archives=_archives(data),
        ci=data.read("pytorch_ci", CiPairing),
        wheels=data.read("pytorch_wheel", WheelPairing, by=lambda row: row.torch),
    )


def _cuda_of(row: Table, key: str) -> Version:
    name = row.required_text(key)
    match = re.fullmatch(r"magma-cuda(\d+)(\d)", name)
    if match is None:
        raise row.fail(key, f"expected a name such as magma-cuda121, got `{name}`")
    return Version(f"{match[1]}.{match[2]}")


def _seen_cudas(row: Table, key: str) -> tuple[Version, ...]:
    return tuple(Version(f"{text[:-1]}.{text[-1]}") for text in row.strings(key))


@dataclass(frozen=True, slots=True)
class CondaMagma:
    """A package of the pytorch channel, all for linux-64."""

    name: str
    """Its name, ``magma-cuda121``."""
    version: Version
    """Its version."""
    cuda: Annotated[Version, Column("name", read=_cuda_of)]
    """The CUDA minor version that its name means."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class MagmaTarballs:
    """The archives of PyTorch's own build images, outside package managers."""

    version: Version
    """Their version."""
    url_pattern: str
    """Their address, with ``{NODOT}`` for the CUDA version and ``{VERSION}`` for theirs."""
    cudas: Annotated[tuple[Version, ...], Column("cuda_seen", read=_seen_cudas)]
    """The CUDA minor versions of which one was seen."""
    basis: Basis
    """How certain this is."""

    def url(self, cuda: Version) -> str:
        """Return the address of the archive for a CUDA version, whether or not one was seen there."""
        nodot = cuda.major_minor.replace(".", "")
        return self.url_pattern.replace("{NODOT}", nodot).replace("{VERSION}", self.version.text)


@dataclass(frozen=True, slots=True)
class MagmaTable:
    """Every row of the table that rules need."""

    conda: tuple[CondaMagma, ...]
    """The packages of the pytorch channel, oldest CUDA and MAGMA first."""
    tarballs: MagmaTarballs
    """The archives of PyTorch's own build images."""

    def conda_for(self, cuda: Version) -> CondaMagma | None:
        """Return the newest package of the pytorch channel for a CUDA minor version, None if there is none."""
        rows = [row for row in self.conda if row.cuda.major_minor == cuda.major_minor]
        return rows[-1] if rows else None

    def has_tarball(self, cuda: Version) -> bool:
        """Return whether an archive for a CUDA minor version was seen."""
        return any(known.major_minor == cuda.major_minor for known in self.tarballs.cudas)


def read_magma(data: Data) -> MagmaTable:
    """Build the table of MAGMA from its rows; raises FactsError if one is invalid."""
    return MagmaTable(
        conda=data.read("conda_pytorch", CondaMagma, by=lambda row: (row.cuda, row.version)),
        tarballs=data.tables["linux_tarball"].read(MagmaTarballs),
    )
