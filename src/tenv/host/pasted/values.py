"""Parse the words after a label."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tenv.host.pasted.interface import Item, Line, PastedGpu, Said, Value

__all__ = [
    "NEVER",
    "answer",
    "compiler",
    "from_labels",
    "gcc",
    "gpu_lines",
    "kernel",
    "labelled",
    "lacking",
    "operating_system",
    "platform",
    "pytorch",
    "truth",
    "version",
]

NEVER = r"(?!)"
"""Bare words as labels, which need a separator after them."""

_VERSION = re.compile(r"(?<![\w.])[vV]?(\d{1,8}(?:\.\d{1,8}){1,4})(?![\d])")
_LACKING = re.compile(
    r"could not collect|n/?a\b|none\b|no (cuda|gpu|driver)\b|unknown|null\b|-+$|"
    r"not (found|available|installed|set|applicable|supported)",
    re.IGNORECASE,
)
_PYTORCH = re.compile(r"(?<![\w.])[vV]?(\d{1,4}\.\d{1,4}(?:\.[\w+]+)*(?:\+[\w.]+)?)")
_TRUTHS = {"yes": True, "true": True, "no": False, "false": False}
_ARCHITECTURES = {
    "x86_64": "64",
    "amd64": "64",
    "x64": "64",
    "64-bit": "64",
    "aarch64": "aarch64",
    "arm64": "arm64",
    "ppc64le": "ppc64le",
}
_MACHINE = re.compile(r"(?<![A-Za-z0-9])(x86_64|amd64|aarch64|arm64|ppc64le)(?![A-Za-z0-9])", re.IGNORECASE)
_ASIDE = r"(?:\s*\((?!tensorflow)[^()]{0,40}\))?"
_GPU = re.compile(
    r"^[\s|]*(?:[-*]\s+)?\**\[?GPU\s*#?(?P<numbers>\d{1,3}(?:\s*,\s*\d{1,3})*)\]?\s*(?:[:=]|\|(?=\s*[A-Za-z]))\**\s*"
    r"(?P<name>\S.*)$"
)
_NEXT_GPU = re.compile(r"(?<=\S)\s+(?=GPU\s*#?\d{1,3}\s*:\s*\S)")
"""Where a forum has joined the lines of a list."""
_MIG = re.compile(r"^\s*MIG\s+(?P<profile>\d+[cg]\.\S+)\s+Device\s+\d+\s*:")
_APART = 3
"""How many lines may separate the GPUs of one list."""

_UUID = re.compile(r"\s*\((UUID|arch|GPU-).*$", re.IGNORECASE)


def lacking(words: str) -> bool:
    """Return whether the words after a label mean that there is no value."""
    return _LACKING.match(words.strip().strip("<>[]()`'\"")) is not None


def version(words: str) -> str | None:
    """Return the first version in some words."""
    match = _VERSION.search(words)
    return match[1] if match else None


def pytorch(words: str) -> str | None:
    """Return the version of PyTorch, with its local part, from the words after its label."""
    match = _PYTORCH.match(words.strip().strip("`'\""))
    return match[1].rstrip(".") if match else None


def truth(words: str) -> bool | None:
    """Return the boolean of a yes or no; None for other words."""
    match = re.match(r"[A-Za-z]+", words.strip().strip("`'\"*"))
    return _TRUTHS.get(match[0].lower()) if match else None


def compiler(words: str) -> str | None:
    """Return the version of a compiler: the one after the vendor in parentheses, which has its own numbers."""
    rest = words.strip()
    while (start := rest.find("(")) >= 0:
        depth, end = 0, len(rest)
        for place in range(start, len(rest)):
            depth += (rest[place] == "(") - (rest[place] == ")")
            if depth == 0:
                end = place + 1
                break
        before = version(rest[:start])
        if before:
            return before
        rest = rest[end:]
    return version(rest)


def gcc(words: str) -> str | None:
    """Return the version of gcc, but not of the one in ``/proc/driver/nvidia/version``, which built the module."""
    return None if words.lower().startswith("gcc version") else compiler(words)


def operating_system(words: str) -> str | None:
    """Return the name of a system without its architecture."""
    name = re.sub(r"\s*\((x86_64|amd64|aarch64|arm64|ppc64le|64-bit)\)\s*$", "", words.strip().strip("`'\""))
    return re.sub(r"(?<=[a-z])(?=\d)", " ", name) if name and re.search(r"[A-Za-z]", name) else None


def platform(words: str) -> str | None:
    """Return the platform in words about a system or a kernel; None without an architecture.

    Examples are ``Ubuntu 22.04 (x86_64)`` and ``Linux-5.15-aarch64-with-glibc2.35``.
    """
    if re.search(r"\bwin(dows|32|64)\b", words, re.IGNORECASE) and not re.search("WSL|microsoft-standard", words):
        return "win-64"
    match = _MACHINE.search(words)
    if match is None:
        return None
    architecture = _ARCHITECTURES[match[1].lower()]
    if re.search(r"mac\s?os|darwin", words, re.IGNORECASE):
        return "osx-arm64" if architecture in ("arm64", "aarch64") else "osx-64"
    return f"linux-{'aarch64' if architecture == 'arm64' else architecture}"


def kernel(words: str, line: int) -> Iterator[Said]:
    """Yield the values in a kernel's name: whether this is WSL, and the platform."""
    if found := platform(words):
        yield Said(Item.PLATFORM, found, line)
    if re.search("microsoft|WSL", words, re.IGNORECASE) and not re.search(r"\bwindows\b", words, re.IGNORECASE):
        yield Said(Item.WSL, True, line)
    elif re.search(r"\d+\.\d+\S*-\S|windows", words, re.IGNORECASE):
        yield Said(Item.WSL, False, line)


def answer(item: Item, words: str, line: int, read: Callable[[str], Value]) -> Said | None:
    """Return the value in the words after a label; None if they are unreadable."""
    if not words.strip():
        return None
    if lacking(words):
        return Said(item, None, line, words.strip()[:40])
    value = read(words)
    return Said(item, value, line) if value is not None else None


def labelled(lines: Iterable[Line], labels: Iterable[str], bare: str = NEVER) -> Iterator[tuple[str, str, int]]:
    """Yield each label at the start of a line: the label in lower case, the words after it, the line.

    Bullets, bold type and table borders before it are ignored, and so is a remark in parentheses after it:
    ``PyTorch Version (e.g., 1.0)``, ``Is CUDA available (PyTorch)``.

    Args:
        lines: The lines.
        labels: The labels, in lower case.
        bare: What the words must begin with if there is no colon or other separator before them.
    """
    ordered = sorted(labels, key=len, reverse=True)
    names = "|".join(re.escape(label).replace(r"\ ", r"\s+") for label in ordered)
    pattern = re.compile(
        rf"^[\s\-*+#|`\"'•·>]*(?P<label>{names}){_ASIDE}[`*\"']*\s*(?:[:=|][`*\"']*\s*|\s(?={bare}))(?P<words>.*)$",
        re.IGNORECASE,
    )
    for line in lines:
        if (match := pattern.match(line.text)) is not None:
            yield " ".join(match["label"].lower().split()), match["words"].strip(" `*|\"'"), line.number


def from_labels(
    lines: Iterable[Line], labels: Mapping[str, tuple[Item, Callable[[str], Value]]], bare: str = NEVER
) -> Iterator[Said]:
    """Yield the values after labels, each with its item and its parser."""
    for label, words, number in labelled(lines, labels, bare):
        item, read = labels[label]
        if (said := answer(item, words, number, read)) is not None:
            yield said


def gpu_lines(lines: Sequence[Line]) -> Iterator[Said]:
    """Yield the GPUs of lines such as ``GPU 0: NAME``, with the instances that follow them: one list per block."""
    block: list[PastedGpu] = []
    first, before = 0, -9
    numbers: set[int] = set()
    apart = (Line(whole.number, part) for whole in lines for part in _NEXT_GPU.split(whole.text))
    for line in apart:
        if match := _GPU.match(line.text):
            own = [int(number) for number in match["numbers"].split(",")]
            if block and (line.number - before > _APART or numbers.intersection(own)):
                yield Said(Item.GPUS, tuple(block), first)
                block, numbers = [], set()
            first, before = first if block else line.number, line.number
            numbers.update(own)
            block += [_gpu(match["name"])] * len(own)
        elif (match := _MIG.match(line.text)) and block and line.number - before <= _APART:
            last = block[-1]
            block[-1] = PastedGpu(last.name, mig=True, instances=(*last.instances, match["profile"]))
            before = line.number
    if block:
        yield Said(Item.GPUS, tuple(block), first)


def _gpu(words: str) -> PastedGpu:
    arch = re.search(r"\(arch=(\d{1,2}\.\d)\)", words)
    return PastedGpu(_UUID.sub("", words).strip(" `\"'|*"), capability=arch[1] if arch else "")
