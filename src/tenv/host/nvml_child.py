"""Query NVML for all values at once.

The module of a child process (`tenv.host.nvml`): a driver library may hang or crash its process. It prints one JSON
object in which every value is ``{"value": …}`` or ``{"error": …}``.

It calls the library through `ctypes` and writes its few kinds of JSON values itself: nvidia-ml-py, which has all of
NVML, and `json` take as long to load as NVML takes to answer.

Source: ``nvml.h`` of CUDA 13.0, and https://docs.nvidia.com/deploy/nvml-api/.
"""

import ctypes
import os
import sys

TYPE_CHECKING = False  # as `typing` has it
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["main"]

_TEXT = 96
"""Bytes of the longest text: NVML_DEVICE_NAME_V2_BUFFER_SIZE. A driver version has at most 80."""
_PCI = 256
"""Bytes for nvmlPciInfo_t of any version."""
_DEVICE, _ADDRESS = 28, 36
"""Offsets of ``pciDeviceId`` and of ``busId`` in version 3; version 2 has the address at 0 alone."""
_LEGACY_TEXT = 16
_UNSIGNED = 4


class _NvmlError(Exception):
    """NVML refused a call, or lacks the function; the text says why."""


class _Nvml:
    """The library; a method raises _NvmlError where the library has no answer."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        self._library.nvmlErrorString.restype = ctypes.c_char_p
        self._call("nvmlInit_v2")

    def _call(self, name: str, *arguments: object) -> None:
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise _NvmlError("Function Not Found") from None
        if status := function(*arguments):
            text = self._library.nvmlErrorString(status) or b"NVML error %d" % status
            raise _NvmlError(text.decode("ascii", "replace"))

    def text(self, name: str, *arguments: object) -> str:
        """Return a text as JSON."""
        buffer = ctypes.create_string_buffer(_TEXT)
        self._call(name, *arguments, buffer, _TEXT)
        return _quoted(buffer.value.decode("ascii", "replace"))

    def numbers(self, name: str, *arguments: object, count: int = 1) -> list[int]:
        """Return numbers, each given by a pointer of its own."""
        values = [ctypes.c_int() for _ in range(count)]
        self._call(name, *arguments, *map(ctypes.byref, values))
        return [value.value for value in values]

    def handle(self, index: int) -> ctypes.c_void_p:
        """Return the handle of a GPU."""
        handle = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
        return handle

    def memory(self, handle: ctypes.c_void_p) -> int:
        """Return a GPU's memory in bytes: the first of three numbers."""
        sizes = (ctypes.c_ulonglong * 3)()
        self._call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(sizes))
        return sizes[0]

    def pci(self, handle: ctypes.c_void_p) -> tuple[int, str]:
        """Return a GPU's number, its device in the upper half and its vendor in the lower one, and its address."""
        info = ctypes.create_string_buffer(_PCI)
        try:
            self._call("nvmlDeviceGetPciInfo_v3", handle, info)
        except _NvmlError:
            self._call("nvmlDeviceGetPciInfo_v2", handle, info)  # drivers before 384
            address = info.raw[:_LEGACY_TEXT]
        else:
            address = info.raw[_ADDRESS:]
        device = int.from_bytes(info.raw[_DEVICE : _DEVICE + _UNSIGNED], sys.byteorder)
        return device, address.partition(b"\0")[0].decode("ascii", "replace")


def main(path: str) -> None:
    """Print the answer of the library at a path, and end the process."""
    try:
        nvml = _Nvml(path)
    except (OSError, AttributeError, _NvmlError) as error:
        sys.exit(str(error))

    def gpu(index: int) -> str:
        handle = nvml.handle(index)
        return _object(
            name=_asked(lambda: nvml.text("nvmlDeviceGetName", handle)),
            capability=_asked(lambda: str(nvml.numbers("nvmlDeviceGetCudaComputeCapability", handle, count=2))),
            memory=_asked(lambda: str(nvml.memory(handle))),
            device=_asked(lambda: str(nvml.pci(handle)[0])),
            address=_asked(lambda: _quoted(nvml.pci(handle)[1])),
            mig=_asked(lambda: str(nvml.numbers("nvmlDeviceGetMigMode", handle, count=2)[0])),
        )

    try:
        (count,) = nvml.numbers("nvmlDeviceGetCount_v2")
        counted = _object(value=str(count))
    except _NvmlError as error:
        count, counted = 0, _object(error=_quoted(str(error)))
    gpus = [_asked(lambda index=index: gpu(index)) for index in range(count)]  # type: ignore[misc]
    answer = _object(
        driver=_asked(lambda: nvml.text("nvmlSystemGetDriverVersion")),
        cuda=_asked(lambda: str(nvml.numbers("nvmlSystemGetCudaDriverVersion_v2")[0])),
        count=counted,
        gpus=f"[{', '.join(gpus)}]",
    )
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()
    os._exit(0)  # to take the interpreter apart takes longer than to ask for all of this


def _asked(question: "Callable[[], str]") -> str:
    try:
        return _object(value=question())
    except _NvmlError as error:
        return _object(error=_quoted(str(error)))


def _object(**members: str) -> str:
    """Return a JSON object of members that are JSON already."""
    return "{" + ", ".join(f'"{name}": {value}' for name, value in members.items()) + "}"


def _quoted(text: str) -> str:
    """Return a text of ASCII and U+FFFD as JSON."""
    return '"' + "".join(sign if _is_plain(sign) else f"\\u{ord(sign):04x}" for sign in text) + '"'


def _is_plain(sign: str) -> bool:
    return " " <= sign <= "~" and sign not in '"\\'
