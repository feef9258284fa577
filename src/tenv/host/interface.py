"""The answer of a probe: a fact with its origin, or why it is missing."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tenv.core.dataclass import dataclass
from tenv.core.missing import Missing, ReasonKind
from tenv.core.worded import Worded

__all__ = ["Missing", "ReasonKind"]

T = TypeVar("T")


class OriginKind(Worded):
    """The kind of a value's origin."""

    NVML = "nvml", "the driver's management library"
    NVIDIA_SMI = "nvidia-smi", "nvidia-smi"
    LIBCUDA = "libcuda", "the driver's library for CUDA"
    KERNEL = "kernel", "the kernel module, below /sys and /proc"
    PCI = "pci", "the PCI bus"
    DEVICE_TREE = "device-tree", "the device tree of a board"
    LOADER = "loader", "the file that the loader takes"
    SYSTEM = "system", "the operating system"
    CGROUP = "cgroup", "the limit of a control group"
    VARIABLE = "variable", "an environment variable"
    SEARCH = "search", "variables, PATH and the usual folders"
    SEARCH_MSVC = "search-msvc", "the same, and Visual Studio"
    OVERRIDE = "override", "CONDA_OVERRIDE_CUDA"
    ASSUMED = "assumed", "an option such as --assume-driver"
    PASTED = "pasted", "a line of a pasted text"
    PACKAGE = "package", "a file of an installed package"
    DERIVED = "derived", "the tables, from another value of the report"
    OTHER = "other", "none of these"


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """A value that was read from a host."""

    value: T
    """The value."""
    origin: str
    """The probe that reported it, as text that a user can follow up (``nvidia-smi``, a path). No decision uses it."""
    kind: OriginKind = OriginKind.OTHER
    """The kind of its origin, for decisions."""


def fact_to_json(answer: Fact[T] | Missing, value: Callable[[T], Any] = str) -> dict[str, Any]:
    """Return an answer as JSON values: ``{"value": …, "origin": …}`` or ``{"missing": reason}``.

    Args:
        answer: The answer of a probe.
        value: Converts its value to JSON values.
    """
    if isinstance(answer, Missing):
        return {"missing": answer.reason}
    return {"value": value(answer.value), "origin": answer.origin}
