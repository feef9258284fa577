"""Items that a pasted text can describe, and the parsing of the words after a label."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tenv.core.dataclass import dataclass
from tenv.core.worded import Worded
from tenv.host.pasted.clean_text import Line


class Item(Worded):
    """The items that a pasted text can describe."""

    PLATFORM = "platform", "the platform"
    OS = "os", "the operating system"
    WSL = "wsl", "whether this is WSL"
    PYTHON = "python", "the version of Python"
    PYTORCH = "pytorch", "the version of PyTorch"
    PYTORCH_CUDA = "pytorch_cuda", "the CUDA that PyTorch was built with"
    CUDA_AVAILABLE = "cuda_available", "whether PyTorch sees a GPU"
    DRIVER = "driver", "the version of the driver"
    DRIVER_IN_WSL = "driver_in_wsl", "a second number of nvidia-smi under WSL"
    MODULE = "module", "the kind of the kernel module"
    CUDA = "cuda", "the CUDA that the driver offers"
    TOOLKIT = "toolkit", "the version of nvcc"
    TOOLKIT_PATH = "toolkit_path", "CUDA_HOME"
    GCC = "gcc", "the version of gcc or g++"
    CLANG = "clang", "the version of clang"
    CMAKE = "cmake", "the version of CMake"
    GLIBC = "glibc", "the version of the GNU C library"
    WHEELS = "wheels", "the wheels of NVIDIA"
    CORES = "cores", "how many processors there are"
    GPUS = "gpus", "which GPUs there are"
    AMD_DRIVER = "amd_driver", "the version of AMD's kernel module"
    AMD_GPUS = "amd_gpus", "which AMD GPUs there are"
    ROCM = "rocm", "the release of ROCm"
    OTHER = "other", "none of these"


@dataclass(frozen=True, slots=True)
class PastedGpu:
    """A GPU as a text describes it."""

    name: str
    """Its name as printed; it ends with three dots where nvidia-smi cut it. Empty where the text has none."""
    memory: int | None = None
    """MiB; None if the text does not have it."""
    capability: str = ""
    """Its compute capability, or an empty string."""
    address: str = ""
    """Its PCI address as printed, or an empty string."""
    mig: bool | None = None
    """Whether it is split into instances; None if the text does not have it."""
    instances: tuple[str, ...] = ()
    """The profiles of its listed instances."""
    pci_id: str = ""
    """Its vendor and device as printed, ``10de:2b85``, or an empty string."""
    fabric: str = ""
    """The state of its registration with NVSwitch, a value of `FabricState`, or an empty string."""

    @property
    def cut(self) -> bool:
        """Whether the name is truncated."""
        return self.name.endswith("...")


Value = str | bool | tuple[PastedGpu, ...] | None


@dataclass(frozen=True, slots=True)
class PastedEntry:
    """A value in a text."""

    item: Item
    """The item that it describes."""
    value: Value
    """The value; None if the text reports that it could not be collected."""
    line: int
    """The number of the line."""
    words: str = ""
    """The text in place of a value, such as ``Could not collect``."""


@dataclass(frozen=True, slots=True)
class PasteLayout:
    """A form of machine descriptions."""

    name: str
    """Its common name: ``nvidia-smi -q``."""
    read: Callable[[Sequence[Line]], Iterable[PastedEntry]]
    """Yields the values of a text in this form; nothing for other texts."""


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
_OF_GPUS = re.compile(
    r"^\s*GPU (?P<numbers>\d{1,3}(?:,\s*\d{1,3})*) Compute Capability:\s*(?P<capability>\d{1,2}\.\d)\s*$"
)
"""The capability of GPUs that a line above names."""
_APART = 3
"""How many lines may separate the GPUs of one list."""

_UUID = re.compile(r"\s*(\((UUID|arch|GPU-)|\[(Discrete|Integrated)\]).*$", re.IGNORECASE)


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


MUSL = "musl"
"""The value of `Item.GLIBC` where the C library is another one."""


def glibc(words: str) -> str | None:
    """Return the version of the GNU C library, or `MUSL`."""
    return MUSL if re.search(r"\bmusl", words, re.IGNORECASE) else version(words)


def operating_system(words: str) -> str | None:
    """Return the name of a system without its architecture."""
    name = re.sub(r"\s*\((x86_64|amd64|aarch64|arm64|ppc64le|64-bit)\)\s*$", "", words.strip().strip("`'\""))
    return re.sub(r"(?<!win)(?<=[a-z])(?<!\bv)(?=\d)", " ", name) if name and re.search(r"[A-Za-z]", name) else None


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


def kernel(words: str, line: int) -> Iterator[PastedEntry]:
    """Yield the values in the name of a kernel or a platform: whether this is WSL, the platform, and musl."""
    if found := platform(words):
        yield PastedEntry(Item.PLATFORM, found, line)
    if glibc(words) == MUSL:
        yield PastedEntry(Item.GLIBC, MUSL, line)
    if re.search("microsoft|WSL", words, re.IGNORECASE) and not re.search(r"\bwindows\b", words, re.IGNORECASE):
        yield PastedEntry(Item.WSL, True, line)
    elif re.search(r"\d+\.\d+\S*-\S|windows|\bwin(32|64)\b", words, re.IGNORECASE):
        yield PastedEntry(Item.WSL, False, line)


def answer(item: Item, words: str, line: int, read: Callable[[str], Value]) -> PastedEntry | None:
    """Return the value in the words after a label; None if they are unreadable."""
    if not words.strip():
        return None
    if lacking(words):
        return PastedEntry(item, None, line, words.strip()[:40])
    value = read(words)
    return PastedEntry(item, value, line) if value is not None else None


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
) -> Iterator[PastedEntry]:
    """Yield the values after labels, each with its item and its parser."""
    for label, words, number in labelled(lines, labels, bare):
        item, read = labels[label]
        if (entry := answer(item, words, number, read)) is not None:
            yield entry


def gpu_lines(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    """Yield the GPUs of lines such as ``GPU 0: NAME``, with the instances that follow them: one list per block."""
    block: list[PastedGpu] = []
    first, before = 0, -9
    numbers: list[int] = []
    apart = (Line(whole.number, part) for whole in lines for part in _NEXT_GPU.split(whole.text))
    for line in apart:
        if match := _GPU.match(line.text):
            own = [int(number) for number in match["numbers"].split(",")]
            if block and (line.number - before > _APART or not set(own).isdisjoint(numbers)):
                yield from _of_makers(block, first)
                block, numbers = [], []
            first, before = first if block else line.number, line.number
            numbers += own
            block += [_gpu(match["name"])] * len(own)
        elif (match := _OF_GPUS.match(line.text)) and block and line.number - before <= _APART:
            of = {int(number) for number in match["numbers"].split(",")}
            pairs = zip(numbers, block, strict=True)
            block = [replace(gpu, capability=match["capability"]) if number in of else gpu for number, gpu in pairs]
        elif (match := _MIG.match(line.text)) and block and line.number - before <= _APART:
            last = block[-1]
            block[-1] = PastedGpu(last.name, mig=True, instances=(*last.instances, match["profile"]))
            before = line.number
    if block:
        yield from _of_makers(block, first)


_OF_AMD = re.compile(r"(?:AMD|Radeon|Advanced Micro Devices)\b", re.IGNORECASE)
_GFX = re.compile(r"\s*\((gfx[0-9a-f]+)\S*\)")


def _of_makers(block: Sequence[PastedGpu], first: int) -> Iterator[PastedEntry]:
    """Yield the GPUs of each maker: a torch for ROCm lists AMD's where another lists NVIDIA's."""
    amd = [gpu for gpu in block if _OF_AMD.match(gpu.name)]
    if others := tuple(gpu for gpu in block if gpu not in amd):
        yield PastedEntry(Item.GPUS, others, first)
    if amd:  # the number of `arch=` is HIP's, and no architecture of AMD
        yield PastedEntry(Item.AMD_GPUS, tuple(_amd(gpu.name) for gpu in amd), first)


def _amd(name: str) -> PastedGpu:
    found = _GFX.search(name)
    return PastedGpu(re.sub(r"\s*\((?:gfx|arch=)\S*\)", "", name), capability=found[1] if found else "")


def _gpu(words: str) -> PastedGpu:
    arch = re.search(r"\(arch=(\d{1,2}\.\d)\)", words)
    return PastedGpu(_UUID.sub("", words).strip(" `\"'|*"), capability=arch[1] if arch else "")
