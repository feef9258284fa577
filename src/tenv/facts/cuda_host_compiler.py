"""Which host compilers nvcc accepts, and which glibc its headers work with."""

from collections.abc import Mapping
from dataclasses import dataclass

from tenv.core.toml_reader import Table
from tenv.core.versions import Version
from tenv.facts.interface import Basis, number, required_version
from tenv.facts.table_files import Data

__all__ = ["GlibcConflict", "HostCompilerTable", "HostCompilers", "read"]


_SINCE = " (from glibc "


@dataclass(frozen=True, slots=True)
class HostCompilers:
    """The host compilers of one minor version of the CUDA toolkit.

    Attributes:
        major_minor: The version of the toolkit.
        gcc_min: The oldest major version of GCC that the installation guide names; older ones are not rejected.
        gcc_max: The newest major version of GCC that its headers do not reject.
        gcc_max_detail: Where that differs between the toolkit's updates, or an empty string.
        clang_min: The oldest clang that the installation guide names.
        clang_max: The newest major version of clang that its headers do not reject.
        msvc_min: The lowest ``_MSC_VER`` that is accepted.
        msvc_below: The lowest ``_MSC_VER`` that is too new.
        basis: How well this is known.
    """

    major_minor: str
    gcc_min: int
    gcc_max: int
    gcc_max_detail: str
    clang_min: Version
    clang_max: Version
    msvc_min: int
    msvc_below: int
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "HostCompilers":
        """Read one row of the data file; raises FactsError with the row's path."""
        return cls(
            major_minor=required_version(row, "major_minor").major_minor,
            gcc_min=number(row, "gcc_min"),
            gcc_max=number(row, "gcc_max"),
            gcc_max_detail=row.text("gcc_max_detail"),
            clang_min=required_version(row, "clang_min"),
            clang_max=required_version(row, "clang_max"),
            msvc_min=number(row, "msvc_min"),
            msvc_below=number(row, "msvc_below"),
            basis=Basis.read(row, sources),
        )


@dataclass(frozen=True, slots=True)
class GlibcConflict:
    """Toolkits whose headers do not compile with a newer glibc.

    Attributes:
        first: The first minor version of the toolkit.
        last: The last one.
        glibc: The first glibc that fails.
        functions: The functions that both declare.
        basis: How well this is known.
    """

    first: Version
    last: Version
    glibc: Version
    functions: tuple[str, ...]
    basis: Basis

    def declared(self, glibc: Version) -> tuple[str, ...]:
        """Return the functions that this glibc declares; some came later: ``rsqrt (from glibc 2.42)``."""
        parts = ((name, *name.rstrip(")").partition(_SINCE)) for name in self.functions)
        return tuple(short for _, short, _, since in parts if not since or Version(since) <= glibc)

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "GlibcConflict":
        """Read one row of the data file; raises FactsError with the row's path."""
        return cls(
            first=required_version(row, "toolkit_from"),
            last=required_version(row, "toolkit_to"),
            glibc=required_version(row, "fails_from_glibc"),
            functions=row.strings("functions"),
            basis=Basis.read(row, sources),
        )


@dataclass(frozen=True, slots=True)
class HostCompilerTable:
    """Every row of the table.

    Attributes:
        toolkits: One row per minor version of the toolkit, oldest first.
        conflicts: One row per range of toolkits that some glibc breaks.
    """

    toolkits: tuple[HostCompilers, ...]
    conflicts: tuple[GlibcConflict, ...]

    def limits(self, cuda: Version) -> HostCompilers | None:
        """Return the host compilers of a toolkit, None when the table has no row for its minor version."""
        return next((row for row in self.toolkits if row.major_minor == cuda.major_minor), None)

    def glibc_conflict(self, cuda: Version, glibc: Version) -> GlibcConflict | None:
        """Return why a toolkit's headers do not compile with the headers of a glibc, None when nothing is known of it.

        Args:
            cuda: The version of the toolkit.
            glibc: The version of the glibc whose headers the compiler uses (the host's, or a sysroot's).
        """
        minor = Version(cuda.major_minor)
        return next((row for row in self.conflicts if row.first <= minor <= row.last and glibc >= row.glibc), None)

    def newest_conflict(self, glibc: Version) -> Version | None:
        """Return the newest minor version of the toolkit that a glibc breaks, None when it breaks none."""
        return max((row.last for row in self.conflicts if glibc >= row.glibc), default=None)


def read(data: Data) -> HostCompilerTable:
    """Make the table of its rows; raises FactsError when one is damaged."""
    toolkits = (HostCompilers.read(*row) for row in data.rows("toolkit"))
    return HostCompilerTable(
        toolkits=tuple(sorted(toolkits, key=lambda row: Version(row.major_minor))),
        conflicts=tuple(GlibcConflict.read(*row) for row in data.rows("glibc_header_conflict")),
    )
