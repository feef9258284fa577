"""Read the output of NVIDIA's sample ``deviceQuery``."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tenv.host.pasted.interface import Item, Line, PastedGpu, PasteLayout, Said

__all__ = ["DEVICE_QUERY"]

_DEVICE = re.compile(r"^\s*Device \d+: \"(?P<name>[^\"]+)\"")
_DRIVER = re.compile(r"^\s*CUDA Driver Version / Runtime Version\s+(?P<cuda>\d+\.\d+)\s*/")
_CAPABILITY = re.compile(r"^\s*CUDA Capability Major/Minor version number:\s+(?P<capability>\d{1,2}\.\d)\s*$")


def _read(lines: Sequence[Line]) -> Iterator[Said]:
    gpus: list[PastedGpu] = []
    first = 0
    for line in lines:
        if match := _DEVICE.match(line.text):
            gpus.append(PastedGpu(match["name"]))
            first = first or line.number
        elif match := _DRIVER.match(line.text):
            yield Said(Item.CUDA, match["cuda"], line.number)
        elif gpus and (match := _CAPABILITY.match(line.text)):
            gpus[-1] = replace(gpus[-1], capability=match["capability"])
    if gpus:
        yield Said(Item.GPUS, tuple(gpus), first)


DEVICE_QUERY = PasteLayout("deviceQuery", _read)
