"""The host compilers that nvcc accepts, and the glibc that its headers work with."""

from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column, OptionalText
from tenv.core.versions import Version
from tenv.facts.interface import Basis, MinorVersion
from tenv.facts.table_files import Rows

_SINCE = " (from glibc "


@dataclass(frozen=True, slots=True)
class HostCompilers:
    """The host compilers of one minor version of the CUDA toolkit."""

    major_minor: MinorVersion
    """The version of the toolkit."""
    gcc_min: int
    """The oldest major version of GCC that the installation guide names; older ones are not rejected."""
    gcc_max: int
    """The newest major version of GCC that its headers do not reject."""
    gcc_max_detail: OptionalText
    """The differences between the toolkit's updates, or an empty string."""
    clang_min: Version
    """The oldest clang that the installation guide names."""
    clang_max: Version
    """The newest major version of clang that its headers do not reject."""
    msvc_min: int
    """The lowest ``_MSC_VER`` that is accepted."""
    msvc_below: int
    """The lowest ``_MSC_VER`` that is too new."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class GccBreak:
    """Releases of GCC that a toolkit's headers accept but that break its nvcc."""

    first: Annotated[Version, Column("toolkit_from")]
    """The first minor version of the toolkit."""
    last: Annotated[Version, Column("toolkit_to")]
    """The last one."""
    since: Annotated[Version, Column("fails_from_gcc")]
    """The first GCC that fails."""
    before: Annotated[Version, Column("fails_below_gcc")]
    """The first one after it that works or is rejected."""
    snapshot: Annotated[Version | None, Column("snapshot_gcc")]
    """A GCC before `since` that a distribution ships as a later snapshot of its branch; None for none."""
    snapshot_glibc: Version | None
    """The glibc of that distribution."""
    certain: bool
    """Whether every such GCC fails; otherwise some distributions have fixed theirs."""
    certain_below_glibc: Version | None
    """A distribution's own GCC surely fails beside a glibc older than this; None if none does."""
    what: str
    """The failure, for messages."""
    basis: Basis
    """How certain this is."""

    def hits(self, gcc: Version, glibc: Version | None) -> bool:
        """Return whether a GCC fails.

        Args:
            gcc: Its version.
            glibc: The glibc of its distribution; None for a GCC that is not from a distribution.
        """
        if self.since <= gcc < self.before:
            return True
        return glibc is not None and gcc == self.snapshot and glibc == self.snapshot_glibc

    def surely(self, glibc: Version | None) -> bool:
        """Return whether a GCC that it hits is known to be unfixed.

        Args:
            glibc: The glibc of its distribution; None for a GCC that is not from a distribution.
        """
        return self.certain or bool(glibc and self.certain_below_glibc and glibc < self.certain_below_glibc)


@dataclass(frozen=True, slots=True)
class GlibcConflict:
    """Toolkits whose headers do not compile with a newer glibc."""

    first: Annotated[Version, Column("toolkit_from")]
    """The first minor version of the toolkit."""
    last: Annotated[Version, Column("toolkit_to")]
    """The last one."""
    glibc: Annotated[Version, Column("fails_from_glibc")]
    """The first glibc that fails."""
    functions: tuple[str, ...]
    """The functions that both declare; empty if the glibc uses types that nvcc does not support."""
    types: tuple[str, ...]
    """Those types."""
    platform: OptionalText
    """The platform on which it fails; an empty string for every one."""
    gcc: Annotated[Version | None, Column("from_gcc")]
    """The first GCC for which the glibc uses those types; None for all."""
    basis: Basis
    """How certain this is."""

    def declared(self, glibc: Version) -> tuple[str, ...]:
        """Return the functions that this glibc declares; some came later: ``rsqrt (from glibc 2.42)``."""
        parts = ((name, *name.rstrip(")").partition(_SINCE)) for name in self.functions)
        return tuple(short for _, short, _, since in parts if not since or Version(since) <= glibc)


@dataclass(frozen=True, slots=True)
class LastForSystem:
    """The last toolkit that NVIDIA packaged for a system."""

    system: str
    """The name of the system."""
    glibc: Version
    """Its glibc, which no other system has that NVIDIA packages newer toolkits for."""
    last: Annotated[Version, Column("last_toolkit")]
    """The last minor version of the toolkit."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class HostCompilerTable:
    """Every row of the table."""

    toolkits: Annotated[tuple[HostCompilers, ...], Rows("toolkit", by=lambda row: Version(row.major_minor))]
    """One row per minor version of the toolkit, oldest first."""
    breaks: Annotated[tuple[GccBreak, ...], Rows("gcc_break")]
    """The releases of GCC that a toolkit's headers accept but that fail."""
    conflicts: Annotated[tuple[GlibcConflict, ...], Rows("glibc_header_conflict")]
    """One row per range of toolkits that some glibc breaks."""
    systems: Annotated[tuple[LastForSystem, ...], Rows("last_for_system")]
    """The systems that NVIDIA packages no newer toolkits for."""

    def limits(self, cuda: Version) -> HostCompilers | None:
        """Return the host compilers of a toolkit, None if the table has no row for its minor version."""
        return next((row for row in self.toolkits if row.major_minor == cuda.major_minor), None)

    def broken_by(self, cuda: Version, gcc: Version, glibc: Version | None = None) -> GccBreak | None:
        """Return why a toolkit does not compile with a GCC that its headers accept; None if no failure is known.

        Args:
            cuda: The version of the toolkit.
            gcc: The version of the GCC.
            glibc: The glibc of its distribution; None for a GCC that is not from a distribution.
        """
        minor = Version(cuda.major_minor)
        return next((row for row in self.breaks if row.first <= minor <= row.last and row.hits(gcc, glibc)), None)

    def glibc_conflict(
        self, cuda: Version, glibc: Version, platform: str = "", gcc: Version | None = None
    ) -> GlibcConflict | None:
        """Return why a toolkit's headers do not compile with the headers of a glibc; None if no conflict is known.

        Args:
            cuda: The version of the toolkit.
            glibc: The version of the glibc whose headers the compiler uses (the host's, or a sysroot's).
            platform: The platform, such as ``linux-aarch64``.
            gcc: The version of the host compiler where that is a GCC; None if it is not known.
        """
        minor = Version(cuda.major_minor)
        return next(
            (
                row
                for row in self.conflicts
                if row.first <= minor <= row.last and glibc >= row.glibc and row.platform in ("", platform)
                if row.gcc is None or gcc is None or gcc >= row.gcc
            ),
            None,
        )

    def ended(self, cuda: Version, glibc: Version) -> LastForSystem | None:
        """Return the system with a glibc that NVIDIA packaged toolkits for, but not this one; None if there is none."""
        minor = Version(cuda.major_minor)
        return next((row for row in self.systems if row.glibc == glibc and minor > row.last), None)

    def newest_conflict(self, glibc: Version, platform: str = "") -> Version | None:
        """Return the newest minor version of the toolkit that a glibc breaks, None if it breaks none."""
        rows = (row for row in self.conflicts if glibc >= row.glibc and row.platform in ("", platform))
        return max((row.last for row in rows), default=None)
