"""Which NVIDIA driver a CUDA toolkit needs.

Two numbers answer that, and they are easily mistaken for each other. The *native* driver is the one that a toolkit's
release came with: it knows all of that CUDA version. The *floor* is the oldest driver on which a program built with
the toolkit runs at all; from CUDA 11 on it is the same for every release of a major version, and far below the
native one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tenv.core.toml_reader import Table
from tenv.core.versions import Version
from tenv.facts.interface import Basis, number, required_version
from tenv.facts.table_files import Data

__all__ = [
    "CudaDriverTable",
    "Forward",
    "ForwardVerdict",
    "Minimum",
    "MinorVersionFloor",
    "ToolkitDriver",
    "read",
]

_ABSENT = ("", "N/A", "none")


class ForwardVerdict(StrEnum):
    """What a cuda-compat package does on a driver branch, as NVIDIA's table marks it."""

    COMPATIBLE = "C"
    """The package lets programs of its CUDA version run on that branch, on the GPUs for which it is made."""
    NATIVE = "N"
    """The branch is the package's own: its CUDA version needs no package there."""
    EXCLUDED = "X"
    """The package is not for that branch, which is newer than it and runs its CUDA version without it."""


@dataclass(frozen=True, slots=True)
class Minimum:
    """The oldest driver that will do, and how well that is known.

    Attributes:
        driver: The version of the kernel driver, in the numbering of the platform that was asked for.
        basis: How well the number is known for just this CUDA version.
    """

    driver: Version
    basis: Basis


@dataclass(frozen=True, slots=True)
class MinorVersionFloor:
    """The oldest driver on which the programs of a CUDA major version run (minor-version compatibility).

    Attributes:
        cuda_major: The first number of the CUDA version.
        min_linux: The Linux driver; None before CUDA 11, where each release needs its own driver.
        min_windows: The Windows driver, which is also the one that counts under WSL.
        basis: How well this is known.
    """

    cuda_major: int
    min_linux: Version | None
    min_windows: Version | None
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "MinorVersionFloor":
        """Read one row of the data file; raises FactsError with the row's path."""
        return cls(
            cuda_major=number(row, "cuda_major"),
            min_linux=_version(row, "min_linux"),
            min_windows=_version(row, "min_windows"),
            basis=Basis.read(row, sources),
        )


@dataclass(frozen=True, slots=True)
class ToolkitDriver:
    """The drivers that NVIDIA names for one release of the CUDA toolkit.

    Attributes:
        toolkit: The release, as NVIDIA numbers it.
        major_minor: Its first two numbers, the grain at which drivers know CUDA versions.
        rn_linux: The Linux driver in the table of the release notes; None when the table has none.
        rn_windows: The Windows driver in that table.
        bundled_linux: The driver inside the Linux installer.
        bundled_windows: The driver inside the Windows installer.
        mvc_min_linux: The Linux driver that a program built with the release needs at run time.
        mvc_min_windows: The Windows driver that such a program needs.
        driver_branch: The branch that the release belongs to, ``R580`` as 580; NVIDIA gives no more for some of 13.x.
        basis: How well this is known.
    """

    toolkit: Version
    major_minor: str
    rn_linux: Version | None
    rn_windows: Version | None
    bundled_linux: Version | None
    bundled_windows: Version | None
    mvc_min_linux: Version | None
    mvc_min_windows: Version | None
    driver_branch: Version | None
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "ToolkitDriver":
        """Read one row of the data file; raises FactsError with the row's path."""
        return cls(
            toolkit=required_version(row, "toolkit"),
            major_minor=row.required_text("major_minor"),
            rn_linux=_version(row, "rn_linux"),
            rn_windows=_version(row, "rn_windows"),
            bundled_linux=_version(row, "bundled_linux"),
            bundled_windows=_version(row, "bundled_windows"),
            mvc_min_linux=_version(row, "mvc_min_linux"),
            mvc_min_windows=_version(row, "mvc_min_windows"),
            driver_branch=_version(row, "driver_branch"),
            basis=Basis.read(row, sources),
        )

    def shipped(self, windows: bool) -> Version | None:
        """Return the lower of the drivers that the release notes and the installer name, None when neither does.

        Where the two differ, both drivers are of the release's own branch, so both know its CUDA version.
        """
        named = (self.rn_windows, self.bundled_windows) if windows else (self.rn_linux, self.bundled_linux)
        return min((driver for driver in named if driver is not None), default=None)

    def required(self, windows: bool) -> Version | None:
        """Return the driver that a program built with the release needs, None when nothing names one."""
        return (self.mvc_min_windows if windows else self.mvc_min_linux) or self.shipped(windows)


@dataclass(frozen=True, slots=True)
class Forward:
    """What a cuda-compat package does on a driver branch.

    It says nothing of the GPU: the package works on data-centre GPUs, on some workstation GPUs that NVIDIA calls
    NGC-ready, and on Jetson; on a GeForce, programs end with `CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE` (804).

    Attributes:
        package: The package, ``cuda-compat-12-8``.
        cuda: The CUDA version that it brings.
        branch: The driver branch, the first number of the driver's version.
        verdict: What it does there.
        basis: How well this is known.
    """

    package: str
    cuda: Version
    branch: int
    verdict: ForwardVerdict
    basis: Basis


@dataclass(frozen=True, slots=True)
class CudaDriverTable:
    """Every row of the table.

    Attributes:
        floors: One row per CUDA major version, newest first.
        toolkits: One row per release of the toolkit, newest first.
        forwards: One row per cuda-compat package and driver branch, those of NVIDIA's current table first.
    """

    floors: tuple[MinorVersionFloor, ...]
    toolkits: tuple[ToolkitDriver, ...]
    forwards: tuple[Forward, ...] = ()
    _by_minor: dict[str, list[ToolkitDriver]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.toolkits:
            self._by_minor.setdefault(row.major_minor, []).append(row)

    def floor(self, cuda: Version, windows: bool) -> Minimum | None:
        """Return the oldest driver on which a program built with a toolkit runs.

        From CUDA 11 on that is the floor of the major version, also for a release that the table does not know yet
        (which is then not confirmed). Before, it is the driver of the release itself, or of the first release of that
        major and minor version when no patch digit is given.

        Args:
            cuda: The version of the toolkit.
            windows: Whether a Windows driver is meant; true under WSL too.

        Returns:
            The driver, or None when the table says nothing about that version.
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
        """Return the oldest driver that knows all of a toolkit's CUDA version.

        That is the lowest driver of any release of that major and minor version; where only the branch is published,
        the first driver of the branch.

        Args:
            cuda: The version of the toolkit.
            windows: Whether a Windows driver is meant; true under WSL too.

        Returns:
            The driver, or None when the table names none for that version.
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
        """Return the oldest driver that will do: the lower of `floor` and `native`, None when neither is known.

        The first drivers of 11.0 and, on Windows, of 12.0 are older than the floor that came later; they run their own.
        """
        known = (self.floor(cuda, windows), self.native(cuda, windows))
        return min((row for row in known if row), key=lambda row: row.driver, default=None)

    def forward(self, cuda: Version, driver: Version) -> Forward | None:
        """Return what the cuda-compat package of a toolkit's minor version does on a driver's branch.

        Args:
            cuda: The version of the toolkit.
            driver: The version of the Linux driver, or its branch alone.

        Returns:
            The row, or None when NVIDIA's tables have none for that pair.
        """
        minor = cuda.major_minor
        found = (row for row in self.forwards if row.branch == driver.major and row.cuda.major_minor == minor)
        return next(found, None)

    def _rows(self, cuda: Version) -> list[ToolkitDriver]:
        return self._by_minor.get(cuda.major_minor, [])

    def _doubt(self, cuda: Version) -> str:
        """Return why the floor of the major version is not known to hold for this release, or an empty string."""
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


def _version(row: Table, key: str) -> Version | None:
    def parse(text: str) -> Version | None:
        return None if text in _ABSENT else Version(text.removeprefix("R"))

    return row.parsed(key, parse, None)


def _forwards(data: Data) -> Iterator[Forward]:
    """Yield the pairs of package and branch, those of the current edition of NVIDIA's table first."""
    current = data.table("forward_compat")[0].strings("driver_branches")
    for row, sources in data.rows("forward_compat_row"):
        marks = row.data.get("by_branch")
        pairs = marks.items() if isinstance(marks, dict) else _pairs(row, current, row.text("by_branch"))
        cuda, package = required_version(row, "cuda"), row.required_text("package")
        for branch, mark in pairs:
            yield _forward(row, package, cuda, branch, mark, Basis.read(row, sources))
    older, sources = data.table("forward_compat_v575")
    basis = Basis.read(older, sources)
    rows = older.table("rows")
    for text in rows.data:
        package = f"cuda-compat-{text.replace('.', '-')}"
        for branch, mark in _pairs(older, older.strings("driver_branches"), rows.text(text)):
            yield _forward(older, package, Version(text), branch, mark, basis)


def _pairs(row: Table, branches: tuple[str, ...], marks: str) -> list[tuple[str, str]]:
    if len(marks) != len(branches):
        raise row.fail("by_branch", f"expected one mark for each of {len(branches)} driver branches, got {len(marks)}")
    return list(zip(branches, marks, strict=True))


def _forward(row: Table, package: str, cuda: Version, branch: str, mark: str, basis: Basis) -> Forward:
    try:
        return Forward(package, cuda, int(branch), ForwardVerdict(mark), basis)
    except ValueError as error:
        message = f"expected a driver branch and one of C, N and X, got `{branch}` and `{mark}`"
        raise row.fail("by_branch", message) from error


def read(data: Data) -> CudaDriverTable:
    """Make the table of its rows; raises FactsError when one is damaged."""
    floors = (MinorVersionFloor.read(*row) for row in data.rows("minor_version_compat"))
    toolkits = (ToolkitDriver.read(*row) for row in data.rows("toolkit"))
    return CudaDriverTable(
        floors=tuple(sorted(floors, key=lambda row: row.cuda_major, reverse=True)),
        toolkits=tuple(sorted(toolkits, key=lambda row: row.toolkit, reverse=True)),
        forwards=tuple(_forwards(data)),
    )
