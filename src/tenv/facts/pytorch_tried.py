"""What a revision of PyTorch is known to fail with: a CUDA, a GCC, a Python, a CMake, a driver: too new or too old."""

import re
from collections.abc import Mapping
from datetime import date
from enum import StrEnum

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Table
from tenv.core.versions import Version
from tenv.facts.interface import Basis, optional_version, required_version
from tenv.facts.table_files import Data

__all__ = ["KnownFailure", "Part", "PytorchTriedTable", "Trunk", "nightly_day", "read"]

_NIGHTLY = re.compile(r"\d+(?:\.\d+)*\.dev(\d{4})(\d\d)(\d\d)(?!\d)")
"""A nightly build, which has its day in its version: ``2.9.0.dev20250623``."""
_ALPHA = re.compile(r"\d+(\.\d+)*(a|\.dev)\d*")
"""A revision of the trunk, which has the number of the release that it becomes: ``2.9.0a0+git1234``."""


class Part(StrEnum):
    """What a revision is built with, or for the driver what it runs on."""

    CUDA = "cuda"
    GCC = "gcc"
    PYTHON = "python"
    CMAKE = "cmake"
    DRIVER = "driver"


class Trunk(StrEnum):
    """What the trunk did while it had the number of the first release that works."""

    FAILS = "fails"
    """It failed on all of these days."""
    OPEN = "open"
    """It changed in these days: the version alone does not tell."""


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """Versions of a part that fail with some revisions.

    Attributes:
        id: Its name.
        part: Which part.
        first: The first version of the part that fails; None for all old ones.
        below: The first version of the part that works again; None for all new ones.
        torch_from: The first release of PyTorch that fails; None for all old ones.
        torch_below: The first release that works.
        trunk: What the trunk did while it had the number of that release.
        trunk_from: The first number of the trunk of which that is true.
        failed_from: The first day on which the trunk of that number is known to have failed; None for all before.
        failed_on: The last such day; None if no day is known.
        worked_on: The day from which on the trunk is known to work; None if no day is known.
        platform: The only platform that it is about; empty for all.
        with_cuda: Whether it is about builds with CUDA alone.
        cuda_from: The first CUDA of a build that it is about; None for all.
        what: What fails.
        fix: What helps besides another version, or an empty string.
        basis: How well this is known.
    """

    id: str
    part: Part
    first: Version | None
    below: Version | None
    torch_from: Version | None
    torch_below: Version
    trunk: Trunk
    trunk_from: Version
    failed_from: date | None
    failed_on: date | None
    worked_on: date | None
    platform: str
    with_cuda: bool
    cuda_from: Version | None
    what: str
    fix: str
    basis: Basis

    @classmethod
    def read(cls, row: Table, sources: Mapping[str, str]) -> "KnownFailure":
        """Read one row of the data file; raises FactsError with the row's path."""
        part, trunk = row.parsed("part", Part, None), row.parsed("trunk", Trunk, Trunk.OPEN)
        if part is None:
            raise row.fail("part", "is required")
        return cls(
            id=row.required_text("id"),
            part=part,
            first=optional_version(row, "from"),
            below=optional_version(row, "below"),
            torch_from=optional_version(row, "torch_from"),
            torch_below=required_version(row, "torch_below"),
            trunk=trunk,
            trunk_from=optional_version(row, "trunk_from") or required_version(row, "torch_below"),
            failed_from=row.parsed("failed_from", date.fromisoformat, None),
            failed_on=row.parsed("failed_on", date.fromisoformat, None),
            worked_on=row.parsed("worked_on", date.fromisoformat, None),
            platform=row.text("platform"),
            with_cuda=row.flag("with_cuda"),
            cuda_from=optional_version(row, "cuda_from"),
            what=row.required_text("what"),
            fix=row.text("fix"),
            basis=Basis.read(row, sources),
        )

    def has(self, version: Version) -> bool:
        """Return whether a version of the part is one of those that fail."""
        return (self.first is None or version >= self.first) and (self.below is None or version < self.below)

    def fails_with(self, torch: str, day: date | None = None) -> bool | None:
        """Return whether it fails with a revision; None if neither its version nor its day tells.

        Args:
            torch: The version as written; that of a nightly build has its day in it.
            day: The day of the commit, if known.
        """
        match = re.match(r"\d+(\.\d+)*", torch)
        if match is None:
            return False
        release = Version(match.group())
        if self.torch_from is not None and release < self.torch_from:
            return False
        last = release.major_minor == self.torch_below.major_minor
        if (
            _ALPHA.match(torch)
            and release >= Version(self.trunk_from.major_minor)
            and (last or release < self.torch_below)
        ):
            return True if self.trunk is Trunk.FAILS else self._fails_on(day or nightly_day(torch))
        return release < self.torch_below

    def _fails_on(self, day: date | None) -> bool | None:
        """Return whether the trunk of a day failed; None if the row does not tell."""
        if day is None:
            return None
        if self.failed_on and day <= self.failed_on and (self.failed_from is None or day >= self.failed_from):
            return True
        return False if self.worked_on and day >= self.worked_on else None


def nightly_day(torch: str) -> date | None:
    """Return the day in the version of a nightly build; None for another version."""
    match = _NIGHTLY.match(torch)
    try:
        return date(*map(int, match.groups())) if match else None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class PytorchTriedTable:
    """Every row of the table.

    Attributes:
        failures: What is known to fail.
    """

    failures: tuple[KnownFailure, ...]

    def find(
        self, part: Part, version: Version, torch: str, platform: str, day: date | None = None
    ) -> tuple[KnownFailure, bool] | None:
        """Return why a part does not go with a revision.

        Args:
            part: Which part.
            version: Its version.
            torch: The revision's version as written.
            platform: The platform that it is built for.
            day: The day of the revision's commit, if known.

        Returns:
            The row, and whether it is sure to fail (else the day of the revision decides); None if nothing is known.
        """
        open_: tuple[KnownFailure, bool] | None = None
        for row in self.failures:
            if row.part is part and row.has(version) and row.platform in ("", platform):
                fails = row.fails_with(torch, day)
                if fails:
                    return row, True
                if fails is None and open_ is None:
                    open_ = row, False
        return open_


def read(data: Data) -> PytorchTriedTable:
    """Make the table of its rows; raises FactsError when one is damaged."""
    return PytorchTriedTable(tuple(KnownFailure.read(*row) for row in data.rows("tried")))
