"""The behavior of cuda-compat packages on driver branches, and its derivation for pairs outside the tables."""

from collections.abc import Iterator
from dataclasses import field
from enum import StrEnum

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Table, getter_of
from tenv.core.untrusted import whole_number
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.table_files import Data


class ForwardVerdict(StrEnum):
    """The behavior of a cuda-compat package on a driver branch, as marked in NVIDIA's table."""

    COMPATIBLE = "C"
    """The package lets programs of its CUDA version run on that branch, on the GPUs for which it is made."""
    NATIVE = "N"
    """The branch is the package's own: its CUDA version needs no package there."""
    EXCLUDED = "X"
    """The package is not for that branch."""


@dataclass(frozen=True, slots=True)
class ForwardCompatibility:
    """The behavior of a cuda-compat package on a driver branch.

    It does not depend on the GPU: the package works on data-center GPUs, on some workstation GPUs that NVIDIA calls
    NGC-ready, and on Jetson; on a GeForce, programs fail with `CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE` (804).
    """

    package: str
    """The package, ``cuda-compat-12-8``."""
    cuda: Version
    """The CUDA version that it brings."""
    branch: int
    """The driver branch, the first number of the driver's version."""
    verdict: ForwardVerdict
    """Its behavior there."""
    basis: Basis
    """How certain this is."""
    listed: bool = True
    """Whether a table names the branch; otherwise the verdict is derived from an older branch."""


@dataclass(frozen=True, slots=True)
class ForwardTable:
    """Every row about cuda-compat."""

    rows: tuple[ForwardCompatibility, ...]
    """One row per package and driver branch: first NVIDIA's current table, then older editions, then the requirements
    of NVIDIA's container images."""
    evaluation: dict[int, Basis] = field(default_factory=dict)
    """The branches without forward compatibility, with the source."""
    open: dict[int, tuple[Version, Basis]] = field(default_factory=dict)
    """By driver branch, the first CUDA whose package fails on the open kernel module, with the source."""
    _by_minor: dict[str, list[ForwardCompatibility]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_minor: dict[str, list[ForwardCompatibility]] = {}
        for row in self.rows:
            by_minor.setdefault(row.cuda.major_minor, []).append(row)
        object.__setattr__(self, "_by_minor", by_minor)

    def find(self, cuda: Version, driver: Version, open_module: bool = False) -> ForwardCompatibility | None:
        """Return the behavior of a minor version's cuda-compat package on a driver's branch.

        A branch that is not in a table and is newer than an accepted one counts as accepted, but not confirmed: the
            tables drop a branch once its support ends.

        Args:
            cuda: The version of the toolkit.
            driver: The version of the Linux driver, or only its branch.
            open_module: Whether the open kernel module is loaded.

        Returns:
            The row, or None if no branch as old as this is accepted.
        """
        rows = self._by_minor.get(cuda.major_minor, [])
        known = next((row for row in rows if row.branch == driver.major), None)
        fails = self.open.get(driver.major) if open_module else None
        if fails is not None and known is not None and fails[0] <= Version(cuda.major_minor):
            return ForwardCompatibility(known.package, known.cuda, known.branch, ForwardVerdict.EXCLUDED, fails[1])
        if known is not None:
            return known
        older = max(
            (row for row in rows if row.verdict is ForwardVerdict.COMPATIBLE and row.branch < driver.major),
            key=lambda row: row.branch,
            default=None,
        )
        if older is None:
            return None
        if (basis := self.evaluation.get(driver.major)) is not None:
            return ForwardCompatibility(older.package, older.cuda, driver.major, ForwardVerdict.EXCLUDED, basis)
        doubt = f"no table names branch {driver.major}, and branch {older.branch}, which is older, is accepted"
        basis = older.basis.doubted(doubt)
        return ForwardCompatibility(
            older.package, older.cuda, driver.major, ForwardVerdict.COMPATIBLE, basis, listed=False
        )


def read(data: Data) -> ForwardTable:
    """Build the table from the rows of ``cuda_driver.toml``; raises FactsError if one is invalid."""
    evaluation = {_branch(row.table): row.basis() for row in data.sections["forward_compat_evaluation"]}
    fails = {
        _branch(row.table): (_version(row.table, "cuda_from"), row.basis())
        for row in data.sections["forward_compat_open"]
    }
    return ForwardTable(tuple(_rows(data)), evaluation, fails)


def _branch(row: Table) -> int:
    """Return a driver branch, which is written as a text; raises an error with the row's path."""
    text = row.required_text("driver_branch")
    branch = whole_number(text)
    if branch is None:
        raise row.fail("driver_branch", f"expected a driver branch, got `{text}`")
    return branch


def _rows(data: Data) -> Iterator[ForwardCompatibility]:
    """Yield the pairs of package and branch, the current edition of NVIDIA's table first."""
    current = data.tables["forward_compat"].table.strings("driver_branches")
    for row in data.sections["forward_compat_row"]:
        table, basis = row.table, row.basis()
        marks = table.data.get("by_branch")
        pairs = marks.items() if isinstance(marks, dict) else _pairs(table, current, table.text("by_branch"))
        cuda, package = _version(table, "cuda"), table.required_text("package")
        for branch, mark in pairs:
            yield _forward(table, package, cuda, branch, mark, basis)
    older, basis = data.tables["forward_compat_v575"].table, data.tables["forward_compat_v575"].basis()
    rows = older.table("rows")
    for text in rows.data:
        for branch, mark in _pairs(older, older.strings("driver_branches"), rows.text(text)):
            yield _forward(older, _package(Version(text)), Version(text), branch, mark, basis)
    for row in data.sections["container_require"]:
        cuda = _version(row.table, "cuda")
        for branch in row.table.strings("fallback_branches"):
            yield _forward(row.table, _package(cuda), cuda, branch, "C", row.basis())


def _version(row: Table, key: str) -> Version:
    version: Version = getter_of(Version)(row, key)
    return version


def _package(cuda: Version) -> str:
    return f"cuda-compat-{cuda.major_minor.replace('.', '-')}"


def _pairs(row: Table, branches: tuple[str, ...], marks: str) -> list[tuple[str, str]]:
    if len(marks) != len(branches):
        raise row.fail("by_branch", f"expected one mark for each of {len(branches)} driver branches, got {len(marks)}")
    return list(zip(branches, marks, strict=True))


def _forward(row: Table, package: str, cuda: Version, branch: str, mark: str, basis: Basis) -> ForwardCompatibility:
    try:
        return ForwardCompatibility(package, cuda, int(branch), ForwardVerdict(mark), basis)
    except ValueError as error:
        message = f"expected a driver branch and one of C, N and X, got `{branch}` and `{mark}`"
        raise row.fail("by_branch", message) from error
