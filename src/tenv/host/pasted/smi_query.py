"""Read ``nvidia-smi -q`` and ``-a``, a tree of labels, and ``--query-gpu`` with its headers."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tenv.host.pasted.interface import Item, Line, PastedGpu, PasteLayout, Said
from tenv.host.pasted.values import lacking

__all__ = ["SMI_QUERY", "SMI_ROWS"]

_BEGIN = re.compile(r"=+\s*NVSMI LOG\s*=+")
_ATTACHED = re.compile(r"^\s*Attached GPUs\s*:\s*\d+\s*$")
_BEFORE = 5
"""How many lines precede the count of GPUs, and separate a GPU from its name."""

_GPU = re.compile(r"^\s*GPU (?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*$")
_PAIR = re.compile(r"^(?P<indent>\s*)(?P<label>[A-Za-z][^:]*?)\s*:\s*(?P<words>.*)$")
_HEAD = re.compile(r"^(?P<indent>\s*)(?P<label>[A-Za-z][\w /-]*?)\s*$")
_VERSIONS = {
    "driver version": Item.DRIVER,
    "kmd version": Item.DRIVER,
    "cuda version": Item.CUDA,
    "cuda umd version": Item.CUDA,
}


def _read(lines: Sequence[Line]) -> Iterator[Said]:
    start = _start(lines)
    if start is None:
        return
    gpus: list[PastedGpu] = []
    first, section = 0, ""
    for line in lines[start + 1 :]:
        if gpus and _BEGIN.search(line.text):
            break  # another run: the first one counts
        if match := _GPU.match(line.text):
            gpus.append(PastedGpu("", address=match["address"]))
            first, section = first or line.number, ""
        elif match := _PAIR.match(line.text):
            label, words = match["label"].lower(), match["words"].strip()
            if not gpus and label in _VERSIONS:
                found = re.match(r"\d+(\.\d+)+", words)
                yield Said(_VERSIONS[label], found[0] if found else None, line.number, words[:40])
            elif gpus:
                gpus[-1] = _with(gpus[-1], section, label, words)
        elif match := _HEAD.match(line.text):
            section = match["label"].lower()
    if gpus:
        yield Said(Item.GPUS, tuple(gpus), first)


def _start(lines: Sequence[Line]) -> int | None:
    """Return the start of the tree; users often omit its first lines."""
    for index, line in enumerate(lines):
        if _BEGIN.search(line.text):
            return index
        if _ATTACHED.match(line.text):
            return max(index - _BEFORE, -1)
        if _GPU.match(line.text) and any("Product Name" in behind.text for behind in lines[index : index + _BEFORE]):
            return index - 1
    return None


def _with(gpu: PastedGpu, section: str, label: str, words: str) -> PastedGpu:
    """Return a GPU with the value of one line of its section."""
    if label == "product name" and not gpu.name and not lacking(words):
        return replace(gpu, name=words)
    if section == "fb memory usage" and label == "total" and (match := re.match(r"(\d{1,9})\s*MiB", words)):
        return replace(gpu, memory=int(match[1]))
    if section == "mig mode" and label == "current" and words in ("Enabled", "Disabled"):
        return replace(gpu, mig=words == "Enabled")
    return gpu


SMI_QUERY = PasteLayout("nvidia-smi -q", _read)


def _rows(lines: Sequence[Line]) -> Iterator[Said]:
    """Yield what ``nvidia-smi --query-gpu=… --format=csv`` prints below its headers."""
    for index, line in enumerate(lines):
        heads = [re.sub(r"\s*\[.*\]", "", head.strip().lower()) for head in line.text.split(",")]
        if "name" not in heads or not {"driver_version", "memory.total", "compute_cap"}.intersection(heads):
            continue
        rows = []
        for after in lines[index + 1 :]:
            cells = [cell.strip() for cell in after.text.split(",")]
            if len(cells) != len(heads):
                break
            rows.append(dict(zip(heads, cells, strict=True)))
        if rows:
            driver = rows[0].get("driver_version", "")
            if re.fullmatch(r"\d+(\.\d+)+", driver):
                yield Said(Item.DRIVER, driver, line.number + 1)
            yield Said(Item.GPUS, tuple(map(_of_row, rows)), line.number + 1)
            return


def _of_row(row: dict[str, str]) -> PastedGpu:
    memory, capability = re.match(r"(\d{1,9})\b", row.get("memory.total", "")), row.get("compute_cap", "")
    mode = row.get("mig.mode.current")
    return PastedGpu(
        row["name"],
        int(memory[1]) if memory else None,
        capability if re.fullmatch(r"\d{1,2}\.\d", capability) else "",
        row.get("pci.bus_id", ""),
        {"Enabled": True, "Disabled": False}.get(mode or ""),
    )


SMI_ROWS = PasteLayout("nvidia-smi --query-gpu", _rows)
