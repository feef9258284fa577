"""Read lists and sentences that users write, the warnings of PyTorch, and the output of compilers and of Python."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from tenv.host.pasted.clean_text import Line
from tenv.host.pasted.values import (
    Item,
    PastedEntry,
    PastedGpu,
    PasteLayout,
    Value,
    compiler,
    from_labels,
    gcc,
    glibc,
    gpu_lines,
    kernel,
    labelled,
    operating_system,
    pytorch,
    truth,
    version,
)

_NVCC = re.compile(r"^[\s#$]*Cuda compilation tools, release (?P<release>\d+\.\d+)(?:, V(?P<build>\d+(?:\.\d+)+))?")
_ROWS: tuple[tuple[re.Pattern[str], Item, Callable[[str], str | None]], ...] = (
    (re.compile(r"^\s*(?:\S*-)?(?:gcc|g\+\+|cc|c\+\+)(?:-\d+)?(?:\.exe)? (\(.*\) .*)$"), Item.GCC, compiler),
    (re.compile(r"^\s*gcc version (\d+(?:\.\d+)+.*)$"), Item.GCC, compiler),
    (re.compile(r"^\s*(?:[\w. -]*\s)?clang version (\d+(?:\.\d+)+.*)$"), Item.CLANG, compiler),
    (re.compile(r"^\s*cmake version (\d+(?:\.\d+)+.*)$"), Item.CMAKE, version),
    (re.compile(r"^\s*ldd \(.*\) (\d+\.\d+)\s*$"), Item.GLIBC, version),
    (re.compile(r"^\s*(musl) libc \(\S+\)\s*$"), Item.GLIBC, glibc),
)
_UNAME = re.compile(r"^\s*Linux \S+ (?P<kernel>\d+\.\d+\S* .*(?:x86_64|aarch64|ppc64le).*)$")


def _compilers(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    for line in lines:
        if match := _NVCC.match(line.text):
            yield PastedEntry(Item.TOOLKIT, match["build"] or match["release"], line.number)
        elif match := _UNAME.match(line.text):
            yield from kernel(f"Linux {match['kernel']}", line.number)
        else:
            for pattern, item, read in _ROWS:
                if (match := pattern.match(line.text)) and (found := read(match[1])):
                    yield PastedEntry(item, found, line.number)


COMPILER_OUTPUT = PasteLayout("nvcc --version and its like", _compilers)


_TOO_OLD = re.compile(r"driver on your system is too old \(found version (?P<number>\d{4,6})\)")


def _old_driver(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    for line in lines:
        if match := _TOO_OLD.search(line.text):
            number = int(match["number"])
            yield PastedEntry(Item.CUDA, f"{number // 1000}.{number % 1000 // 10}", line.number)


OLD_DRIVER = PasteLayout("PyTorch's warning of an old driver", _old_driver)

_NOT_FOR_GPU = re.compile(
    r"(?:^|: )(?P<name>[A-Z][^:]*?) with CUDA capability sm_(?P<major>\d{1,2})(?P<minor>\d)[a-z]? "
    r"is not compatible with "
)
_FOUND_GPU = re.compile(
    r"Found GPU\d+ (?P<name>.+?) which is of (?:cuda|compute) capability (?:\(CC\) )?(?P<capability>\d{1,2}\.\d)\b"
)
_INSTALLED = re.compile(r"Your installed torch==(?P<version>\d[\w.+]*) does not include kernels")


def _gpu_warning(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    """Yield the GPUs that PyTorch warns of, each once: it repeats its warning."""
    gpus: dict[PastedGpu, int] = {}
    for line in lines:
        if match := _NOT_FOR_GPU.search(line.text):
            gpus.setdefault(PastedGpu(match["name"], capability=f"{match['major']}.{match['minor']}"), line.number)
        elif match := _FOUND_GPU.search(line.text):
            gpus.setdefault(PastedGpu(match["name"], capability=match["capability"]), line.number)
        if match := _INSTALLED.search(line.text):
            yield PastedEntry(Item.PYTORCH, pytorch(match["version"]), line.number)
    if gpus:
        yield PastedEntry(Item.GPUS, tuple(gpus), next(iter(gpus.values())))


GPU_WARNING = PasteLayout("PyTorch's warning of a GPU", _gpu_warning)

_ASKED: tuple[tuple[str, Item, Callable[[str], Value]], ...] = (
    ("torch.__version__", Item.PYTORCH, pytorch),
    ("torch.version.cuda", Item.PYTORCH_CUDA, version),
    ("torch.cuda.is_available()", Item.CUDA_AVAILABLE, truth),
)
_PROMPTED = re.compile(r"^\s*(?:(?:In \[\d+\]:|\S*[$#%]) )?(?:print\()?torch\.[\w.]+(?:\(\))?\)?\s*$|\bpython\S* -c ")
"""A line that asks Python for one value; marks such as ``>>>`` are removed as those of a quoted mail are."""


def _prompt(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    """Yield the answer below each line that asks Python for one value of torch."""
    for line, answer in pairwise(lines):
        asked = [row for row in _ASKED if row[0] in line.text]
        if len(asked) == 1 and _PROMPTED.search(line.text):
            _, item, read = asked[0]
            if (found := read(re.sub(r"^Out\[\d+\]: ", "", answer.text.strip()))) is not None:
                yield PastedEntry(item, found, answer.number)


PROMPT = PasteLayout("Python's prompt", _prompt)


_CAPABILITY = re.compile(r"\bcompute capability[\s:*]*(\d{1,2}\.\d)\b", re.IGNORECASE)
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
    stated = _CAPABILITY.search(words)
    gpu = PastedGpu(name, capability=stated[1] if stated else "")
    return (gpu,) * min(max(count, 1), 16) if len(name) <= _LONGEST_NAME else None


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
        "hardware",
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
    ("glibc", "glibc version", "libc", "libc version"): (Item.GLIBC, glibc),
}
_GPUS = tuple(name for names, (item, _) in _NAMES.items() if item is Item.GPUS for name in names)
_DRIVER_BESIDE = re.compile(r"\bdriver(?:\s+version)?[\s:]+v?(\d{3}(?:\.\d{1,3}){1,2})(?![\w.])", re.IGNORECASE)
_WITH_GPU = re.compile(r"PyTorch version \(GPU\?\)\s*:\s*\S+ \((?P<truth>True|False)\)")
_LABELS = {name: row for names, row in _NAMES.items() for name in names}


_SIGN = re.compile(r"[:=]|^\s*\|\s*\**[A-Za-z][\w ]{1,30}\**\s*\|")
"""A sign between a label and its words; in a table, the border behind the first cell."""

_DRAWN = re.compile(r"^\s*\S+\s{3,}(?=(?:GPU|OS|Kernel)(?: Driver)?: )")
"""The picture that neofetch draws beside its lines."""


def _written(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    with_sign = [
        Line(line.number, _DRAWN.sub("", line.text))
        for line in lines
        if _SIGN.search(line.text) and len(line.text) < _LONGEST_ENTRY
    ]
    yield from (entry for entry in from_labels(with_sign, _LABELS) if entry.value is not None)
    for label, words, number in labelled(
        with_sign, ("os", "platform", "python platform", "kernel", "kernel version", "cuda version", *_GPUS)
    ):
        if label not in (*_GPUS, "cuda version"):
            yield from kernel(words, number)
        elif match := _DRIVER_BESIDE.search(words):
            yield PastedEntry(Item.DRIVER, match[1], number)
    yield from gpu_lines([line for line in with_sign if _NVIDIA.search(line.text)])
    for line in with_sign:
        if match := _WITH_GPU.search(line.text):
            yield PastedEntry(Item.CUDA_AVAILABLE, match["truth"] == "True", line.number)


FREE_LIST = PasteLayout("a list written by hand", _written)

_SYSTEM = re.compile(
    r"\b(?P<name>Ubuntu|Debian|CentOS|Fedora|RHEL|Rocky Linux|AlmaLinux|Arch Linux|Alpine Linux|openSUSE|"
    r"Manjaro|Linux Mint)"
    r"[ -]?v?(?P<release>\d+(?:\.\d+)?)\b(?![\d.]*-\d)"  # gcc's `(Ubuntu 11.4.0-1ubuntu1)` is not a system release
)
_SMI = re.compile(r"\bDriver Version:\s*(?P<driver>\d{3}(?:\.\d+)+)")
_OFFERED = re.compile(r"\bCUDA Version:\s*(?P<cuda>\d+\.\d+)\b")
_AVAILABLE = re.compile(
    r"cuda\.is_available\(\)`*\s*(?:returns?|is|gives?|shows?|outputs?|[=:>-]+|返回)?\s*:?\s*`*(?P<truth>True|False)\b",
    re.IGNORECASE,
)
_WSL = re.compile(r"(?P<not>\b(?:no|not|without|instead of|outside|non)\b[\w\s-]{0,12}?)?\bWSL ?2?\b")


def _sentences(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    for line in lines:
        text = line.text[:2000]
        if match := _SMI.search(text):
            yield PastedEntry(Item.DRIVER, match["driver"], line.number)
        if match := _OFFERED.search(text):
            yield PastedEntry(Item.CUDA, match["cuda"], line.number)
        if match := _AVAILABLE.search(text):
            yield PastedEntry(Item.CUDA_AVAILABLE, match["truth"].lower() == "true", line.number)
        if (match := _WSL.search(text)) and not match["not"]:
            yield PastedEntry(Item.WSL, True, line.number)
        if match := _SYSTEM.search(text):
            yield PastedEntry(Item.OS, f"{match['name']} {match['release']}", line.number)


SENTENCES = PasteLayout("a sentence", _sentences)
