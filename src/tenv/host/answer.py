"""The values that both NVML and nvidia-smi report, and the parsers of their texts."""

import re

from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.host.interface import Missing, ReasonKind
from tenv.host.report import Gpu

__all__ = ["Answer", "cuda_version", "driver_version", "first_line", "is_driver", "pci_address", "pci_id", "quoted"]

_DRIVER = re.compile(r"\d{1,4}(\.\d{1,4}){1,3}", re.ASCII)
_ADDRESS = re.compile(r"(?P<domain>[0-9a-f]{4,8}):(?P<rest>[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])")
_QUOTED = 120
_NVIDIA = 0x10DE
_CUDA = range(1000, 100_000)


@dataclass(frozen=True, slots=True)
class Answer:
    """The values that the driver's own tools report.

    Attributes:
        driver: The kernel driver's version.
        cuda: The CUDA version of libcuda.
        gpus: The GPUs that answered.
        lost: Errors about GPUs that exist but did not answer.
    """

    driver: Version | Missing
    cuda: Version | Missing
    gpus: tuple[Gpu, ...] | Missing
    lost: tuple[str, ...] = ()


def is_driver(text: str) -> bool:
    """Return whether a text is exactly a driver version."""
    return _DRIVER.fullmatch(text.strip()) is not None


def driver_version(text: str) -> Version | Missing:
    """Return the driver version from a text that is exactly a version."""
    return Version(text.strip()) if is_driver(text) else quoted(text)


def quoted(text: str) -> Missing:
    """Return why a text has no driver version, with its first line."""
    line = first_line(text)
    return Missing(f"no driver version in `{line}`" if line else "empty answer", ReasonKind.UNREADABLE)


def first_line(text: str) -> str:
    """Return the first line of a program's output, truncated for a message."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    line = "".join(sign if sign.isprintable() else "\ufffd" for sign in line)  # no escapes
    return line if len(line) <= _QUOTED else line[:_QUOTED] + "…"


def cuda_version(number: int) -> Version | Missing:
    """Return the CUDA version of a driver's number such as 12040."""
    if number not in _CUDA:
        return Missing(f"{number} is not a CUDA version", ReasonKind.UNREADABLE)
    return Version(f"{number // 1000}.{number % 1000 // 10}")


def pci_address(text: str) -> str:
    """Return a PCI address in the form of sysfs (``0000:01:00.0``); an empty string for other texts."""
    match = _ADDRESS.fullmatch(text.strip().lower())
    return f"{int(match['domain'], 16):04x}:{match['rest']}" if match else ""


def pci_id(number: int) -> str:
    """Return vendor and device from NVML's number, which has the device in its upper half."""
    return f"{number & 0xFFFF:04x}:{number >> 16:04x}" if number & 0xFFFF == _NVIDIA else ""
