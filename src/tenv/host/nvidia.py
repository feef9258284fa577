"""The driver's own tools, each run at most once for all values of the report."""

from collections.abc import Callable
from functools import cached_property

from tenv.host import nvml, smi
from tenv.host.answer import Answer
from tenv.host.interface import Missing, OriginKind
from tenv.host.loader import Loader
from tenv.host.places import Places

__all__ = ["Nvidia"]


class Nvidia:
    """The driver's own tools on one machine. The first access runs a tool.

    Attributes:
        places: Where to look.
        loader: The loader that finds its libraries.
    """

    def __init__(self, places: Places | None = None, loader: Loader | None = None) -> None:
        self.places = places or Places()
        self.loader = loader or Loader(self.places)

    @cached_property
    def nvml(self) -> Answer | Missing:
        """The answer of NVML."""
        return nvml.ask(self.loader)

    @cached_property
    def smi(self) -> Answer | Missing:
        """The answer of nvidia-smi."""
        return smi.ask(self.places)

    def tools(self) -> list[tuple[str, OriginKind, Callable[[], Answer | Missing]]]:
        """Return the tools by name and kind, the better one first. Calling one runs it."""
        return [
            ("NVML", OriginKind.NVML, lambda: self.nvml),
            ("nvidia-smi", OriginKind.NVIDIA_SMI, lambda: self.smi),
        ]
