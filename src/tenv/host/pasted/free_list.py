"""Read lists and sentences that users write by hand."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from tenv.host.pasted.interface import Item, Line, PastedGpu, PasteLayout, Said, Value
from tenv.host.pasted.values import from_labels, gcc, gpu_lines, kernel, labelled, operating_system, pytorch, version

__all__ = ["FREE_LIST", "SENTENCES"]


_COUNTED = r"(?:(?P<before>\d{1,2})\s*[x\u00d7*]?\s+)?(?P<name>.*?)(?:\s*[x\u00d7*]\s*(?P<behind>\d{1,2}))?$"
_LONGEST_NAME = 80
_LONGEST_ENTRY = 300
"""In characters; longer text is a sentence."""


def _driver(words: str) -> str | None:
    """Return a driver version. A number such as 11.4 after the same label is a CUDA version."""
    match = re.search(r"(?<![\w.])(\d{3}(?:\.\d{1,3}){1,2})(?![\w.])", words)
    return match[1] if match else None


def _gpus(words: str) -> tuple[PastedGpu, ...] | None:
    """Return the GPUs of a line such as ``2 x GeForce RTX 3090``; None for words without an NVIDIA GPU."""
    words = re.sub(r"^GPU\s*\d+\s*:\s*", "", words)
    match = re.match(_COUNTED, words, re.IGNORECASE)
    if match is None or not _NVIDIA.search(match["name"]):
        return None
    name = re.split(
        r"\s*\((?!nvgpu)|\s*[,;/]|\s{2,}|\s+with\s+(?!max-q)", match["name"], maxsplit=1, flags=re.IGNORECASE
    )[0].strip()
    count = int(match["before"] or match["behind"] or 1)
    return (PastedGpu(name),) * min(max(count, 1), 16) if len(name) <= _LONGEST_NAME else None


_NVIDIA = re.compile(
    r"nvidia|geforce|\b[gr]tx\b|quadro|tesla|titan|jetson|\b[vtphalk]\d{2,4}\b|\b(gh|gb|rtx|gtx|gt|mx)\s*\d{3,4}",
    re.IGNORECASE,
)
_NAMES: Mapping[tuple[str, ...], tuple[Item, Callable[[str], Value]]] = {
    (
        "gpu",
        "gpus",
        "gpu model",
        "gpu models",
        "gpu models and configuration",
        "gpu type",
        "gpu name",
        "gpu model and memory",
    ): (
        Item.GPUS,
        _gpus,
    ),
    ("graphics card", "video card", "graphic card", "显卡", "显卡型号", "gpu型号", "显卡信息"): (Item.GPUS, _gpus),
    (
        "driver",
        "driver version",
        "nvidia driver",
        "nvidia driver version",
        "gpu driver",
        "驱动",
        "驱动版本",
        "显卡驱动",
    ): (
        Item.DRIVER,
        _driver,
    ),
    ("os", "operating system", "system", "os version", "linux distribution", "系统", "操作系统", "系统版本"): (
        Item.OS,
        operating_system,
    ),
    ("python", "python version", "python版本"): (Item.PYTHON, version),
    ("pytorch", "torch", "pytorch version", "torch version", "pytorch版本"): (Item.PYTORCH, pytorch),
    ("nvcc", "nvcc version", "cuda toolkit", "cuda toolkit version"): (Item.TOOLKIT, version),
    ("gcc", "gcc version", "g++", "g++ version", "gcc版本"): (Item.GCC, gcc),
    ("cmake", "cmake version"): (Item.CMAKE, version),
    ("glibc", "glibc version"): (Item.GLIBC, version),
}
_GPUS = tuple(name for names, (item, _) in _NAMES.items() if item is Item.GPUS for name in names)
_DRIVER_BESIDE = re.compile(r"\bdriver(?:\s+version)?[\s:]+v?(\d{3}(?:\.\d{1,3}){1,2})(?![\w.])", re.IGNORECASE)
_WITH_GPU = re.compile(r"PyTorch version \(GPU\?\)\s*:\s*\S+ \((?P<truth>True|False)\)")
_LABELS = {name: row for names, row in _NAMES.items() for name in names}


def _read(lines: Sequence[Line]) -> Iterator[Said]:
    with_sign = [line for line in lines if re.search("[:=]", line.text) and len(line.text) < _LONGEST_ENTRY]
    yield from (said for said in from_labels(with_sign, _LABELS) if said.value is not None)
    for label, words, number in labelled(
        with_sign, ("platform", "python platform", "kernel", "kernel version", *_GPUS)
    ):
        if label not in _GPUS:
            yield from kernel(words, number)
        elif match := _DRIVER_BESIDE.search(words):
            yield Said(Item.DRIVER, match[1], number)
    yield from gpu_lines([line for line in with_sign if _NVIDIA.search(line.text)])
    for line in with_sign:
        if match := _WITH_GPU.search(line.text):
            yield Said(Item.CUDA_AVAILABLE, match["truth"] == "True", line.number)


FREE_LIST = PasteLayout("a list written by hand", _read)

_SYSTEM = re.compile(
    r"\b(?P<name>Ubuntu|Debian|CentOS|Fedora|RHEL|Rocky Linux|AlmaLinux|Arch Linux|openSUSE|Manjaro|Linux Mint)"
    r"[ -]?(?P<release>\d+(?:\.\d+)?)\b(?![\d.]*-\d)"  # gcc's `(Ubuntu 11.4.0-1ubuntu1)` is not a system release
)
_SMI = re.compile(r"\bDriver Version:\s*(?P<driver>\d{3}(?:\.\d+)+)")
_OFFERED = re.compile(r"\bCUDA Version:\s*(?P<cuda>\d+\.\d+)\b")
_AVAILABLE = re.compile(
    r"cuda\.is_available\(\)`*\s*(?:returns?|is|gives?|shows?|outputs?|[=:>-]+|返回)?\s*:?\s*`*(?P<truth>True|False)\b",
    re.IGNORECASE,
)
_WSL = re.compile(r"(?P<not>\b(?:no|not|without|instead of|outside|non)\b[\w\s-]{0,12}?)?\bWSL ?2?\b")


def _sentences(lines: Sequence[Line]) -> Iterator[Said]:
    for line in lines:
        text = line.text[:2000]
        if match := _SMI.search(text):
            yield Said(Item.DRIVER, match["driver"], line.number)
        if match := _OFFERED.search(text):
            yield Said(Item.CUDA, match["cuda"], line.number)
        if match := _AVAILABLE.search(text):
            yield Said(Item.CUDA_AVAILABLE, match["truth"].lower() == "true", line.number)
        if (match := _WSL.search(text)) and not match["not"]:
            yield Said(Item.WSL, True, line.number)
        if match := _SYSTEM.search(text):
            yield Said(Item.OS, f"{match['name']} {match['release']}", line.number)


SENTENCES = PasteLayout("a sentence", _sentences)
