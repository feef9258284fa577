"""Read the outputs of AMD's tools: ``rocminfo``, ``amd-smi`` and ``rocm-smi``, and the AMD GPU of `collect_env`."""

import re
from collections.abc import Iterator, Sequence

from tenv.host.amd import parse_amd_smi, parse_rocm_smi, parse_rocminfo
from tenv.host.pasted.clean_text import Line
from tenv.host.pasted.values import Item, PastedEntry, PastedGpu, PasteLayout
from tenv.host.report import AmdGpu

_LOADED = re.compile(r"ROCk module version (\d+(?:\.\d+)+) is loaded")
_SMI = re.compile(r"AMDSMI Tool:.*?ROCm version:\s*(?P<rocm>[\d.]+|N/A)(?:\s*\|\s*amdgpu version:\s*(?P<driver>\S+))?")
_MODEL = re.compile(
    r"GPU models and configuration\s*:\s*(?P<name>AMD .*?|Radeon .*?)(?:\s*\((?P<gfx>gfx[0-9a-f]+)\S*\))?\s*$"
)
_NUMBER = re.compile(r"\d+(?:\.\d+)+")
_ARCHITECTURE = re.compile(r"TARGET_GRAPHICS_VERSION|target_graphics_version")  # with --json, the second


def _gpus(found: Sequence[AmdGpu], line: int) -> Iterator[PastedEntry]:
    if found:
        yield PastedEntry(Item.AMD_GPUS, tuple(PastedGpu(gpu.name, capability=gpu.gfx) for gpu in found), line)


def _first(lines: Sequence[Line], pattern: str | re.Pattern[str]) -> int:
    return next((line.number for line in lines if re.search(pattern, line.text)), 1)


def _rocminfo(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    for line in lines:
        if match := _LOADED.search(line.text):
            yield PastedEntry(Item.AMD_DRIVER, match[1], line.number)
        if line.text.strip() == "WSL environment detected.":
            yield PastedEntry(Item.WSL, True, line.number)
    text = "\n".join(line.text for line in lines)
    yield from _gpus(parse_rocminfo(text), _first(lines, r"^\s*Name:\s+gfx"))


def _amd_smi(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    for line in lines:
        match = _SMI.search(line.text)
        if match and match["rocm"] != "N/A":
            yield PastedEntry(Item.ROCM, match["rocm"], line.number)
        if match and match["driver"] and _NUMBER.fullmatch(match["driver"]):
            yield PastedEntry(Item.AMD_DRIVER, match["driver"], line.number)
    text = "\n".join(line.text for line in lines)
    if _ARCHITECTURE.search(text):
        yield from _gpus(parse_amd_smi(text), _first(lines, _ARCHITECTURE))


def _rocm_smi(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    text = "\n".join(line.text for line in lines)
    yield from _gpus(parse_rocm_smi(text), _first(lines, r"^\s*GPU(\[\d+\]|\s+(NODE\s+)?DID\b)"))


def _collected(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    for line in lines:
        if match := _MODEL.search(line.text):
            yield from _gpus([AmdGpu(match["name"], match["gfx"] or "")], line.number)


ROCMINFO = PasteLayout("rocminfo", _rocminfo)
AMD_SMI = PasteLayout("amd-smi", _amd_smi)
ROCM_SMI = PasteLayout("rocm-smi", _rocm_smi)
COLLECTED_AMD = PasteLayout("collect_env with ROCm", _collected)
