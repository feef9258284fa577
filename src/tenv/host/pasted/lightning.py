"""Read the details that PyTorch Lightning of all releases collects: sections with indented entries."""

import re
from collections.abc import Iterator, Sequence

from tenv.host.pasted.interface import Item, Line, PastedGpu, PasteLayout, Said
from tenv.host.pasted.values import kernel, platform, pytorch, truth, version

__all__ = ["LIGHTNING"]

_SECTION = re.compile(r"^[\s*-]*(?P<name>CUDA|GPU|Packages|Lightning|System|architecture)\s*:\s*$", re.IGNORECASE)
_ENTRY = re.compile(r"^[\s*-]*(?P<label>[\w-]+)\s*:\s+(?P<words>\S.*)$")
_SECTIONS = {"cuda", "system"}


def _read(lines: Sequence[Line]) -> Iterator[Said]:
    names = {match["name"].lower() for line in lines if (match := _SECTION.match(line.text))}
    if not names >= _SECTIONS:
        return
    section, gpus, first = "", [], 0
    linux, processor = False, ""
    for line in lines:
        if match := _SECTION.match(line.text):
            section = match["name"].lower()
        elif match := _ENTRY.match(line.text):
            label, words = match["label"].lower(), match["words"].strip()
            section = "cuda" if section == "gpu" else section
            linux = linux or (label == "os" and "linux" in words.lower())
            processor = words if label == "processor" else processor
            yield from _entry(section, label, words, line.number)
        elif section == "gpu" and (name := line.text.strip(" -*")):
            gpus.append(PastedGpu(name))
            first = first or line.number
        if linux and processor and (found := platform(processor)):
            yield Said(Item.PLATFORM, found, line.number)
            linux = False
    if gpus:
        yield Said(Item.GPUS, tuple(gpus), first)


def _entry(section: str, label: str, words: str, line: int) -> Iterator[Said]:
    if section == "cuda" and label == "available":
        yield Said(Item.CUDA_AVAILABLE, truth(words), line)
    elif section == "cuda" and label == "version":
        yield Said(Item.PYTORCH_CUDA, version(words), line, words[:40])
    elif label in ("pytorch_version", "torch"):
        yield Said(Item.PYTORCH, pytorch(words), line, words[:40])
    elif label == "python":
        yield Said(Item.PYTHON, version(words), line, words[:40])
    elif label == "os":
        yield Said(Item.OS, words, line)
        yield from kernel(words, line) if "windows" in words.lower() else ()
    elif label == "release":
        yield from kernel(f"Linux {words}", line)


LIGHTNING = PasteLayout("Lightning's details", _read)
