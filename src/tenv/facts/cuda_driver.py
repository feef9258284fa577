"""The NVIDIA driver that a CUDA toolkit needs.

There are two different versions. The *native* driver is the one that a toolkit's release shipped with: it supports all
of that CUDA version. The *floor* is the oldest driver that runs programs built with the toolkit. Since CUDA 11, all
releases of a major version share a floor, which is far below the native driver.
"""

from dataclasses import field, replace
from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column, Table
from tenv.core.versions import Version
from tenv.facts.forward_compat import ForwardTable
from tenv.facts.forward_compat import read as read_forward
from tenv.facts.interface import Basis
from tenv.facts.table_files import Data

_ABSENT = ("", "N/A", "none")


def _version(row: Table, key: str) -> Version | None:
    def parse(text: str) -> Version | None:
        return None if text in _ABSENT else Version(text.removeprefix("R"))

    return row.parsed(key, parse, None)


Driver = Annotated[Version | None, Column(read=_version)]
"""A driver or its branch, as NVIDIA writes it; None where NVIDIA names none."""


@dataclass(frozen=True, slots=True)
class Minimum:
    """The oldest sufficient driver, and how certain it is."""

    driver: Version
    """The version of the kernel driver, in the numbering of the requested platform."""
    basis: Basis
    """How certain the number is for this CUDA version."""


@dataclass(frozen=True, slots=True)
class MinorVersionFloor:
    """The oldest driver that runs programs of a CUDA major version (minor-version compatibility)."""

    cuda_major: int
    """The first number of the CUDA version."""
    min_linux: Driver
    """The Linux driver; None before CUDA 11, where each release needs its own driver."""
    min_windows: Driver
    """The Windows driver, which also counts under WSL."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class ToolkitDriver:
    """NVIDIA's drivers for one release of the CUDA toolkit."""

    toolkit: Version
    """The release in NVIDIA's form."""
    major_minor: str
    """Its first two numbers; drivers support CUDA versions at this level."""
    rn_linux: Driver
    """The Linux driver in the table of the release notes; None if the table has none."""
    rn_windows: Driver
    """The Windows driver in that table."""
    bundled_linux: Driver
    """The driver inside the Linux installer."""
    bundled_windows: Driver
    """The driver inside the Windows installer."""
    mvc_min_linux: Driver
    """The Linux driver that a program built with the release needs at run time."""
    mvc_min_windows: Driver
    """The Windows driver that such a program needs."""
    driver_branch: Driver
    """The branch of the release, ``R580`` as 580; for some of 13.x, NVIDIA publishes only the branch."""
    basis: Basis
    """How certain this is."""

    def shipped(self, windows: bool) -> Version | None:
        """Return the lower driver of the release notes and the installer; None if neither has one.

        If the two differ, both drivers are from the release's own branch, so both support its CUDA version.
        """
        named = (self.rn_windows, self.bundled_windows) if windows else (self.rn_linux, self.bundled_linux)
        return min((driver for driver in named if driver is not None), default=None)

    def required(self, windows: bool) -> Version | None:
        """Return the driver that a program built with the release needs; None if unknown."""
        return (self.mvc_min_windows if windows else self.mvc_min_linux) or self.shipped(windows)


@dataclass(frozen=True, slots=True)
class CudaDriverTable:
    """Every row of the table."""

    floors: tuple[MinorVersionFloor, ...]
    """One row per CUDA major version, newest first."""
    toolkits: tuple[ToolkitDriver, ...]
    """One row per release of the toolkit, newest first."""
    forward: ForwardTable = field(default_factory=lambda: ForwardTable(()))
    """The behavior of cuda-compat packages on older drivers."""
    _by_minor: dict[str, list[ToolkitDriver]] = field(init=False, repr=False, compare=False, default_factory=dict)
    _minimums: dict[tuple[Version, bool], Minimum | None] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        for row in self.toolkits:
            self._by_minor.setdefault(row.major_minor, []).append(row)

    def floor(self, cuda: Version, windows: bool) -> Minimum | None:
        """Return the oldest driver that runs programs built with a toolkit.

        Since CUDA 11, it is the floor of the major version, also for a release that is not in the table (then not
        confirmed). Before, it is the driver of the release itself, or of the first release of the minor version if no
        patch is given.

        Args:
            cuda: The version of the toolkit.
            windows: Whether to return a Windows driver, as under WSL.

        Returns:
            The driver, or None if the table has no row for that version.
        """
        for line in self.floors:
            driver = line.min_windows if windows else line.min_linux
            if line.cuda_major == cuda.major and driver is not None:
                doubt = self._doubt(cuda)
                return Minimum(driver, line.basis.doubted(doubt) if doubt else line.basis)
        rows = self._rows(cuda)
        exact = [row for row in rows if row.toolkit == cuda]
        return _lowest(exact, windows) or _lowest(rows, windows)

    def native(self, cuda: Version, windows: bool) -> Minimum | None:
        """Return the oldest driver that supports all of a toolkit's CUDA version.

        It is the lowest driver of any release of that minor version, or the first driver of the branch if only the
        branch is published.

        Args:
            cuda: The version of the toolkit.
            windows: Whether to return a Windows driver, as under WSL.

        Returns:
            The driver, or None if the table names none for that version.
        """
        rows = self._rows(cuda)
        named = [(driver, not row.basis.confirmed, row) for row in rows if (driver := row.shipped(windows)) is not None]
        if named:
            driver, _, row = min(named, key=lambda item: item[:2])
            return Minimum(driver, row.basis)
        branches = [(row.driver_branch, not row.basis.confirmed, row) for row in rows if row.driver_branch is not None]
        if branches:
            driver, _, row = min(branches, key=lambda item: item[:2])
            return Minimum(driver, replace(row.basis, note=f"only the branch R{driver} is published"))
        return None

    def minimum(self, cuda: Version, windows: bool) -> Minimum | None:
        """Return the oldest sufficient driver: the lower of `floor` and `native`; None if neither is known.

        The first drivers of 11.0 and, on Windows, of 12.0 are older than the later floor, but run their own release.
        """
        asked = (cuda, windows)
        if asked not in self._minimums:
            known = (self.floor(cuda, windows), self.native(cuda, windows))
            self._minimums[asked] = min((row for row in known if row), key=lambda row: row.driver, default=None)
        return self._minimums[asked]

    def _rows(self, cuda: Version) -> list[ToolkitDriver]:
        return self._by_minor.get(cuda.major_minor, [])

    def _doubt(self, cuda: Version) -> str:
        """Return why the floor of the major version is not confirmed for this release, or an empty string."""
        rows = self._rows(cuda)
        if not rows:
            return f"the table has no row for CUDA {cuda.major_minor}"
        if any(row.basis.confirmed for row in rows):
            return ""
        return (
            " ".join(row.basis.note for row in rows if row.basis.note)
            or f"the row for CUDA {cuda.major_minor} is not confirmed"
        )


def _lowest(rows: list[ToolkitDriver], windows: bool) -> Minimum | None:
    needed = [(driver, not row.basis.confirmed, row) for row in rows if (driver := row.required(windows)) is not None]
    if not needed:
        return None
    driver, _, row = min(needed, key=lambda item: item[:2])
    return Minimum(driver, row.basis)


def read(data: Data) -> CudaDriverTable:
    """Build the table from its rows; raises FactsError if one is invalid."""
    return CudaDriverTable(
        floors=data.read("minor_version_compat", MinorVersionFloor, by=lambda row: row.cuda_major)[::-1],
        toolkits=data.read("toolkit", ToolkitDriver, by=lambda row: row.toolkit)[::-1],
        forward=read_forward(data),
    )
