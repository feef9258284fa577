"""The driver's own tools, each asked at most once for all that the report wants of it."""

from collections.abc import Callable
from functools import cached_property

from tenv.host import nvml, smi
from tenv.host.answer import Answer
from tenv.host.interface import Missing, OriginKind
from tenv.host.loader import Loader
from tenv.host.places import Places

__all__ = ["Nvidia"]


class Nvidia:
    """The driver's own tools on one machine; the first question to each starts it.

    Attributes:
        places: Where to look.
        loader: The loader that finds its libraries.
    """

    def __init__(self, places: Places | None = None, loader: Loader | None = None) -> None:
        self.places = places or Places()
        self.loader = loader or Loader(self.places)

    @cached_property
    def nvml(self) -> Answer | Missing:
        """What NVML tells."""
        return nvml.ask(self.loader)

    @cached_property
    def smi(self) -> Answer | Missing:
        """What nvidia-smi tells."""
        return smi.ask(self.places)

    def tools(self) -> list[tuple[str, OriginKind, Callable[[], Answer | Missing]]]:
        """Return the tools by name and kind, the better one first; calling one asks it."""
        return [
            ("NVML", OriginKind.NVML, lambda: self.nvml),
            ("nvidia-smi", OriginKind.NVIDIA_SMI, lambda: self.smi),
        ]
