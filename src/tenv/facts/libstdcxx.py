"""The libstdc++ symbols that code from a GCC may need: its own, or the symbols of the library that it links."""

from dataclasses import replace
from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.table_files import Rows


@dataclass(frozen=True, slots=True)
class GccSymbols:
    """The top symbol versions of the libstdc++ of a GCC."""

    since: Version
    """The first GCC that has them."""
    glibcxx: Version
    """The highest ``GLIBCXX_`` version."""
    cxxabi: Version
    """The highest ``CXXABI_`` version."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class DistributionSymbols:
    """The libstdc++ that every GCC of a distribution links, which may be newer than its default GCC."""

    name: str
    """The distribution's name and release."""
    glibc: Version
    """Its glibc."""
    glibcxx: Version
    """The highest ``GLIBCXX_`` version."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class LibstdcxxTable:
    """Every row of the table."""

    gccs: Annotated[tuple[GccSymbols, ...], Rows("gcc", by=lambda row: row.since)]
    """One row per GCC that brought new symbols, oldest first."""
    distributions: Annotated[tuple[DistributionSymbols, ...], Rows("distro")]
    """One row per release of a distribution."""

    def for_distribution(self, glibc: Version) -> DistributionSymbols | None:
        """Return the oldest libstdc++ of the distributions with a glibc; None if there is none."""
        rows = (row for row in self.distributions if row.glibc == glibc)
        return min(rows, key=lambda row: row.glibcxx, default=None)

    def for_gcc(self, version: Version) -> GccSymbols | None:
        """Return the highest symbol versions that code compiled with a GCC may need.

        A bare major version (``13``) means the newest release of it. For a major version that is newer than the table
        the last row is returned, not confirmed.

        Args:
            version: The version of the compiler.

        Returns:
            The row, or None for a GCC older than the table.
        """
        whole = "." not in version.text
        rows = [row for row in self.gccs if row.since <= version or (whole and row.since.major == version.major)]
        if not rows:
            return None
        found, newest = rows[-1], self.gccs[-1].since
        if version.major > newest.major:
            return replace(found, basis=found.basis.doubted(f"the table ends with GCC {newest}"))
        return found
