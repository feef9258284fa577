"""The CUDA, GCC, Python, CMake or driver that a revision of PyTorch fails with, and environments that were created."""

import re
from datetime import date
from enum import StrEnum
from functools import lru_cache
from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column, OptionalText, Table
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.table_files import Rows

_NIGHTLY = re.compile(r"\d+(?:\.\d+)*\.dev(\d{4})(\d\d)(\d\d)(?!\d)")
"""A nightly build, which has its day in its version: ``2.9.0.dev20250623``."""
_ALPHA = re.compile(r"\d+(\.\d+)*(a|\.dev)\d*")
"""A revision of the trunk, which has the number of the release that it becomes: ``2.9.0a0+git1234``."""


class Part(StrEnum):
    """A part that a revision is built with, or the driver that it runs on."""

    CUDA = "cuda"
    GCC = "gcc"
    PYTHON = "python"
    CMAKE = "cmake"
    DRIVER = "driver"


class Trunk(StrEnum):
    """The state of the trunk while it had the number of the first release that works."""

    FAILS = "fails"
    """It failed on all of these days."""
    OPEN = "open"
    """It changed in these days: the version alone does not decide."""


def _trunk_from(row: Table, key: str) -> Version | None:
    return row.parsed(key, Version, None) or row.parsed("torch_below", Version, None)


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """Versions of a part that fail with some revisions."""

    id: str
    """Its name."""
    part: Part
    """Which part."""
    first: Annotated[Version | None, Column("from")]
    """The first version of the part that fails; None for all old ones."""
    below: Version | None
    """The first version of the part that works again; None for all new ones."""
    torch_from: Version | None
    """The first release of PyTorch that fails; None for all old ones."""
    torch_below: Version
    """The first release that works."""
    trunk: Annotated[Trunk, Column(default=Trunk.OPEN)]
    """The state of the trunk while it had the number of that release."""
    trunk_from: Annotated[Version, Column(read=_trunk_from)]
    """The first number of the trunk of which that is true."""
    failed_from: date | None
    """The first day on which the trunk of that number is known to have failed; None for all before."""
    failed_on: date | None
    """The last such day; None if no day is known."""
    worked_on: date | None
    """The day from which on the trunk is known to work; None if no day is known."""
    platform: OptionalText
    """The only platform that it is about; empty for all."""
    with_cuda: bool
    """Whether it is about builds with CUDA alone."""
    cuda_from: Version | None
    """The first CUDA of a build that it is about; None for all."""
    untried: Annotated[bool, Column(default=False)]
    """Whether the answer is open: no build with these versions is known, or one failed for an unknown reason."""
    what: str
    """The failure."""
    fix: OptionalText
    """A remedy besides another version, or an empty string."""
    basis: Basis
    """How well this is known."""

    def has(self, version: Version) -> bool:
        """Return whether a version of the part is one of those that fail."""
        return (self.first is None or version >= self.first) and (self.below is None or version < self.below)

    def fails_with(self, torch: str, day: date | None = None) -> bool | None:
        """Return whether it fails with a revision; None if neither its version nor its day decides.

        Args:
            torch: The version as written; the version of a nightly build has its day in it.
            day: The day of the commit, if known.
        """
        if (release := _release(torch)) is None:
            return False
        if self.torch_from is not None and release < self.torch_from:
            return False
        last = release.major_minor == self.torch_below.major_minor
        if (
            _ALPHA.match(torch)
            and release >= Version(self.trunk_from.major_minor)
            and (last or release < self.torch_below)
        ):
            return True if self.trunk is Trunk.FAILS else self._fails_on(day or nightly_day(torch))
        return None if self.untried and release < self.torch_below else release < self.torch_below

    def _fails_on(self, day: date | None) -> bool | None:
        """Return whether the trunk of a day failed; None if the row does not decide."""
        if day is None:
            return None
        if self.failed_on and day <= self.failed_on and (self.failed_from is None or day >= self.failed_from):
            return True
        return False if self.worked_on and day >= self.worked_on else None


@lru_cache
def _release(torch: str) -> Version | None:
    """Return the dotted numbers of a version as written; every row of the table is asked about them."""
    match = re.match(r"\d+(\.\d+)*", torch)
    return Version(match.group()) if match else None


def nightly_day(torch: str) -> date | None:
    """Return the day in the version of a nightly build; None for another version."""
    match = _NIGHTLY.match(torch)
    try:
        return date(*map(int, match.groups())) if match else None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class PytorchTriedTable:
    """Every row of the table."""

    failures: Annotated[tuple[KnownFailure, ...], Rows("tried")]
    """The known failures."""

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


@dataclass(frozen=True, slots=True)
class CreatedEnvironment:
    """An environment that was created from the lock of a built-in target."""

    target: str
    """The name of the target."""
    platform: str
    """The platform."""
    place: str
    """The system that it was made on."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class CreatedTargetTable:
    """Every row of the table."""

    environments: Annotated[tuple[CreatedEnvironment, ...], Rows("environment")]
    """The environments."""

    def places(self, target: str) -> dict[str, str]:
        """Return where environments of a target were created: the system, by platform."""
        return {row.platform: row.place for row in self.environments if row.target == target}
