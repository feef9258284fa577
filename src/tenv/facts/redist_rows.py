"""Rows of NVIDIA's redist archives: one per version, platform and CUDA variant."""

from collections.abc import Iterable, Mapping

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Table
from tenv.core.versions import Version
from tenv.facts.interface import Basis, number, required_version

__all__ = ["RedistArchive", "releases"]


@dataclass(frozen=True, slots=True)
class RedistArchive:
    """One archive.

    Attributes:
        version: The version of the library.
        platform: NVIDIA's name of the platform (``linux-x86_64``, ``linux-sbsa``).
        cuda_major: The CUDA major version that it is made for; None for an archive of no particular one.
        url: Where it is.
        sha256: Its digest.
        size: Its size in bytes; None if it is not known.
        basis: How certain this is.
    """

    version: Version
    platform: str
    cuda_major: int | None
    url: str
    sha256: str
    size: int | None
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str], base: str) -> "RedistArchive":
        """Read one row of the data file; raises FactsError with the row's path.

        Args:
            row: The row.
            sources: The abbreviations in its source.
            base: The address that its relative path is below.
        """
        return cls(
            version=required_version(row, "version"),
            platform=row.required_text("platform"),
            cuda_major=row.parsed("cuda", lambda text: int(text.removeprefix("cuda")), None),
            url=row.text("url") or base + row.required_text("relative_path"),
            sha256=row.required_text("sha256"),
            size=number(row, "size") if "size" in row.data else None,
            basis=Basis.read(row, sources),
        )


def releases(archives: Iterable[RedistArchive], platform: str | None = None) -> tuple[Version, ...]:
    """Return the versions of which there are archives, rising.

    Args:
        archives: The archives.
        platform: Only those of this platform; None for all.
    """
    return tuple(sorted({row.version for row in archives if platform in (None, row.platform)}))
