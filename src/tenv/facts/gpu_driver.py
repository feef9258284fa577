"""The driver branches and kernel modules that support a GPU, the CUDA of Jetsons, and the driver for WSL."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.table_files import Rows


class NeededModule(StrEnum):
    """The kernel module that supports a GPU."""

    OPEN = "open"
    PROPRIETARY = "proprietary"
    EITHER = "either"


@dataclass(frozen=True, slots=True)
class Generation:
    """GPUs that the same drivers support."""

    name: str
    """Its name."""
    capabilities: Annotated[tuple[Version, ...], Column("cc")]
    """The compute capabilities that belong to it."""
    first_linux: Version | None
    """The first Linux driver that supports one of them; None if unknown."""
    ends_linux: Version | None
    """The first Linux branch without support; None if all have it."""
    ends_windows: Version | None
    """The same for Windows, which has another numbering."""
    module: NeededModule
    """The kernel modules that support them."""
    proprietary_before: Version | None
    """The first driver whose proprietary module does not; None if `module` holds for all drivers."""
    basis: Basis
    """How certain this is."""

    def ends(self, windows: bool) -> Version | None:
        """Return the first branch without support of the GPUs; None if all have it."""
        return self.ends_windows if windows else self.ends_linux

    def has_ended(self, driver: Version, windows: bool = False) -> bool:
        """Return whether a driver is too new for the GPUs."""
        ends = self.ends(windows)
        return ends is not None and driver >= ends


@dataclass(frozen=True, slots=True)
class JetsonLinux:
    """A release of Jetson Linux, and those that follow it without a row of their own."""

    l4t: Version
    """Its version."""
    jetpack: Version
    """The first JetPack with it."""
    cuda: Version
    """The CUDA that its driver offers."""
    driver: Version | None
    """The number that nvidia-smi gives the driver; None if it has none."""
    capabilities: Annotated[tuple[Version, ...], Column("cc")]
    """The compute capabilities of the boards that it is for."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class WslDriver:
    """The first Windows driver that supports programs under WSL."""

    since: Version
    """The driver."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class GpuDriverTable:
    """Every row of the table."""

    generations: Annotated[tuple[Generation, ...], Rows("generation")]
    """One row per generation of GPUs."""
    jetson: Annotated[tuple[JetsonLinux, ...], Rows("jetson", by=lambda row: row.l4t)]
    """One row per release of Jetson Linux at which something changes, oldest first."""
    wsl: Annotated[tuple[WslDriver, ...], Rows("wsl")]
    """The first Windows driver for WSL, one row."""

    def generation(self, capability: Version) -> Generation | None:
        """Return the row of a compute capability, None for a Jetson's and for one that the table lacks."""
        return next((row for row in self.generations if capability in row.capabilities), None)

    def release(self, l4t: Version) -> JetsonLinux | None:
        """Return the row of a release of Jetson Linux; None if it is older than the table."""
        return next((row for row in reversed(self.jetson) if row.l4t <= l4t), None)

    def jetpack_with(self, cuda: Version, capabilities: Iterable[Version]) -> JetsonLinux | None:
        """Return the first release of Jetson Linux whose driver offers a CUDA on boards; None if none does."""
        boards = set(capabilities)
        return next((row for row in self.jetson if row.cuda >= cuda and boards <= set(row.capabilities)), None)

    def releases(self, capability: Version) -> tuple[JetsonLinux, ...]:
        """Return the releases of Jetson Linux for a board, oldest first; none for other GPUs."""
        return tuple(row for row in self.jetson if capability in row.capabilities)
