"""One scan of a machine; values that several probes share are read once."""

from functools import cached_property
from pathlib import Path

from tenv.core.versions import Version
from tenv.host import driver
from tenv.host.interface import Fact, Missing
from tenv.host.loader import Loader
from tenv.host.nvidia import Nvidia
from tenv.host.places import Places


class Scan:
    """One scan of a machine.

    Attributes:
        places: Where to look.
        folder: Where environments go, for the disk.
        loader: Finds libraries as the machine's loader does.
        nvidia: The driver's tools; only for probes in the driver's lane.
    """

    places: Places  # imported here, since the modules of probes and the report import each other
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
        """The version of the kernel driver; only for probes in the driver's lane."""
        return driver.probe(nvidia=self.nvidia)
