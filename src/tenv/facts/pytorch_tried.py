"""What is known to fail when a revision of PyTorch is built: a CUDA, a Python, a CMake that is too new or too old."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tenv.core.toml_reader import Table
from tenv.core.versions import Version
from tenv.facts.interface import Basis, optional_version, required_version
from tenv.facts.table_files import Data

__all__ = ["KnownFailure", "Part", "PytorchTriedTable", "Trunk", "read"]

_ALPHA = re.compile(r"\d+(\.\d+)*(a|\.dev)\d*")
"""A revision of the trunk, which has the number of the release that it becomes: ``2.9.0a0+git1234``."""


class Part(StrEnum):
    """What a revision is built with."""

    CUDA = "cuda"
    PYTHON = "python"
    CMAKE = "cmake"


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
        platform: The only platform that it is about; empty for all.
        with_cuda: Whether it is about builds with CUDA alone.
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
    platform: str
    with_cuda: bool
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
            platform=row.text("platform"),
            with_cuda=row.flag("with_cuda"),
            what=row.required_text("what"),
            fix=row.text("fix"),
            basis=Basis.read(row, sources),
        )

    def has(self, version: Version) -> bool:
        """Return whether a version of the part is one of those that fail."""
        return (self.first is None or version >= self.first) and (self.below is None or version < self.below)

    def fails_with(self, torch: str) -> bool | None:
        """Return whether it fails with a revision; None if its version alone does not tell.

        Args:
            torch: The version as written.
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
            return True if self.trunk is Trunk.FAILS else None
        return release < self.torch_below


@dataclass(frozen=True, slots=True)
class PytorchTriedTable:
    """Every row of the table.

    Attributes:
        failures: What is known to fail.
    """

    failures: tuple[KnownFailure, ...]

    def find(self, part: Part, version: Version, torch: str, platform: str) -> tuple[KnownFailure, bool] | None:
        """Return why a part does not go with a revision.

        Args:
            part: Which part.
            version: Its version.
            torch: The revision's version as written.
            platform: The platform that it is built for.

        Returns:
            The row, and whether it is sure to fail (else the day of the revision decides); None if nothing is known.
        """
        open_: tuple[KnownFailure, bool] | None = None
        for row in self.failures:
            if row.part is part and row.has(version) and row.platform in ("", platform):
                fails = row.fails_with(torch)
                if fails:
                    return row, True
                if fails is None and open_ is None:
                    open_ = row, False
        return open_


def read(data: Data) -> PytorchTriedTable:
    """Make the table of its rows; raises FactsError when one is damaged."""
    return PytorchTriedTable(tuple(KnownFailure.read(*row) for row in data.rows("tried")))
