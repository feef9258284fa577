"""One look at a machine, in which what several probes share is asked once."""

from functools import cached_property
from pathlib import Path

from tenv.core.versions import Version
from tenv.host import driver
from tenv.host.interface import Fact, Missing
from tenv.host.loader import Loader
from tenv.host.nvidia import Nvidia
from tenv.host.places import Places

__all__ = ["Scan"]


class Scan:
    """One look at a machine.

    Attributes:
        places: Where to look.
        folder: Where environments go, for the disk.
        loader: Finds libraries as the machine's loader does.
        nvidia: The driver's tools; for probes of the lane of the driver alone.
    """

    places: Places  # named here, since the types of a probe's file and of the report lead to each other
    folder: Path
    loader: Loader
    nvidia: Nvidia

    def __init__(self, places: Places | None = None, folder: Path = Path()) -> None:
        self.places = places or Places()
        self.folder = folder
        self.loader = Loader(self.places)
        self.nvidia = Nvidia(self.places, self.loader)

    @cached_property
    def driver(self) -> Fact[Version] | Missing:
        """The version of the kernel driver; for probes of the lane of the driver alone."""
        return driver.probe(nvidia=self.nvidia)
