"""Read the table of ``nvidia-smi`` from drivers 304 to 610, and the list of ``nvidia-smi -L``."""

import re
from collections.abc import Iterator, Sequence

from tenv.host.pasted.interface import Item, Line, PastedGpu, PasteLayout, Said
from tenv.host.pasted.values import gpu_lines

__all__ = ["SMI_LIST", "SMI_TABLE"]

_HEADER = re.compile(
    r"NVIDIA-SMI\s+(?P<smi>\d+(?:\.\d+)+)\s+(?:Driver|KMD)\s+Version:\s*(?P<driver>\d+(?:\.\d+)+)"
    r"(?:\s+CUDA\s+(?:UMD\s+)?Version:\s*(?P<cuda>[^\s|]+))?"
)
_ADDRESS = r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]|N/A"
_FIRST = re.compile(
    rf"^[\s|#]*(?P<index>\d{{1,3}})\s+(?P<name>\S.*?)\s+(?P<mode>On|Off|WDDM|TCC|MCDM|N/A)\s*\|\s*(?P<address>{_ADDRESS})"
    r"\s*(?:On|Off|N/A)?\s*\|"
)
_MEMORY = re.compile(r"\|\s*\d+\s*MiB\s*/\s*(?P<total>\d{1,9})\s*MiB\s*\|")
_MIG_MODE = re.compile(r"\|\s*(?P<mode>Enabled|Disabled)\*?\s*\|?\s*$")
_BEHIND = 4
"""How many lines a GPU takes."""


def _read(lines: Sequence[Line]) -> Iterator[Said]:
    for index, line in enumerate(lines):
        if match := _HEADER.search(line.text):
            yield from _header(match, line.number)
        elif "Persistence-M" in line.text and "Bus-Id" in line.text:
            pass  # the header of the columns on Linux
        elif "TCC/WDDM" in line.text or re.search(r"Name\s+(TCC|Driver-Model)\b", line.text):
            yield Said(Item.PLATFORM, "win-64", line.number)
            yield Said(Item.WSL, False, line.number)
        elif _FIRST.match(line.text) and not _belongs(lines, index):
            yield _gpus(lines, index)


def _header(match: "re.Match[str]", line: int) -> Iterator[Said]:
    yield Said(Item.DRIVER, match["driver"], line)
    if match["smi"] != match["driver"]:  # the Linux nvidia-smi with the Windows driver
        yield Said(Item.DRIVER_IN_WSL, match["smi"], line)
        yield Said(Item.WSL, True, line)
    if match["cuda"]:
        known = re.fullmatch(r"\d+\.\d+", match["cuda"])
        yield Said(Item.CUDA, match["cuda"] if known else None, line, match["cuda"][:40])


def _belongs(lines: Sequence[Line], index: int) -> bool:
    """Return whether a GPU's row continues a table that began above it."""
    return any(_FIRST.match(line.text) for line in lines[max(0, index - _BEHIND - 1) : index])


def _gpus(lines: Sequence[Line], start: int) -> Said:
    gpus, index, last = [], start, start
    seen: set[str] = set()
    while index < len(lines) and index - last <= _BEHIND + 1:
        match = _FIRST.match(lines[index].text)
        if match and match["index"] not in seen:
            seen.add(match["index"])
            gpus.append(_gpu(match, lines[index + 1 : index + _BEHIND]))
            last = index
        elif match:
            break
        index += 1
    return Said(Item.GPUS, tuple(gpus), lines[start].number)


def _gpu(match: "re.Match[str]", behind: Sequence[Line]) -> PastedGpu:
    memory, mig = None, None
    for line in behind:
        if _FIRST.match(line.text) or line.text.lstrip().startswith("+"):
            break
        if memory is None and (found := _MEMORY.search(line.text)):
            memory = int(found["total"])
        elif found := _MIG_MODE.search(line.text):
            mig = found["mode"] == "Enabled"
    address = "" if match["address"] == "N/A" else match["address"]
    return PastedGpu(match["name"].strip(), memory, address=address, mig=mig)


SMI_TABLE = PasteLayout("nvidia-smi", _read)


def _list(lines: Sequence[Line]) -> Iterator[Said]:
    return gpu_lines([line if "UUID:" in line.text else Line(line.number, "") for line in lines])


SMI_LIST = PasteLayout("nvidia-smi -L", _list)
