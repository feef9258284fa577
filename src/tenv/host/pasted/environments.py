"""Read reports of environments: `collect_env` of PyTorch, vLLM, detectron2 and mmcv, Lightning, conda and pip."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from tenv.host.pasted.clean_text import Line
from tenv.host.pasted.values import (
    Item,
    PastedEntry,
    PastedGpu,
    PasteLayout,
    Value,
    answer,
    compiler,
    from_labels,
    gcc,
    glibc,
    gpu_lines,
    kernel,
    labelled,
    lacking,
    operating_system,
    platform,
    pytorch,
    truth,
    version,
)

_COLLECTED: Mapping[str, tuple[Item, Callable[[str], Value]]] = {
    "pytorch version": (Item.PYTORCH, pytorch),
    "cuda used to build pytorch": (Item.PYTORCH_CUDA, version),
    "os": (Item.OS, operating_system),
    "gcc version": (Item.GCC, gcc),
    "clang version": (Item.CLANG, compiler),
    "cmake version": (Item.CMAKE, version),
    "libc version": (Item.GLIBC, glibc),
    "python version": (Item.PYTHON, version),
    "is cuda available": (Item.CUDA_AVAILABLE, truth),
    "cuda runtime version": (Item.TOOLKIT, version),
    "nvidia driver version": (Item.DRIVER, version),
}
_OWN = (
    "cuda used to build pytorch",
    "is debug build",
    "cuda runtime version",
    "nvidia driver version",
    "is cuda available",
)
"""Labels that are rare elsewhere."""

_ENOUGH = 2
"""How many of them identify this layout."""

_CORES = re.compile(r"\d{1,5}")
_BARE_VERSION = r"\s*v?\d"
_MODELS = "gpu models and configuration"
_GLUED = re.compile(
    r"\s+(?=(?:Is debug build|CUDA used to build PyTorch|ROCM used to build PyTorch|OS|GCC version|Clang version|"
    r"CMake version|Libc version|Python version|Python platform|Is CUDA available|CUDA runtime version|"
    r"GPU models and configuration|Nvidia driver version|cuDNN version) ?: )"
)


def _collected(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    apart = list(_apart(lines))
    seen = {label for label, _, _ in labelled(apart, _OWN, r"\s*")}
    if len(seen) < _ENOUGH:
        return
    yield from from_labels(apart, _COLLECTED, _BARE_VERSION)
    for label, words, number in labelled(apart, ("os", "python platform", "architecture", "cpu(s)", _MODELS)):
        if label == "os" and (found := platform(words)):
            yield PastedEntry(Item.PLATFORM, found, number)
            if found == "win-64":
                yield PastedEntry(Item.WSL, False, number)
        elif label == "python platform":
            yield from kernel(words, number)
        elif label == "cpu(s)" and _CORES.fullmatch(words):
            yield PastedEntry(Item.CORES, words, number)
        elif label == _MODELS and lacking(words):
            yield PastedEntry(Item.GPUS, None, number, words[:40])
    yield from gpu_lines([_shorter(line) for line in apart])


def _apart(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield lines with at most one label each: some forums join them."""
    for line in lines:
        for part in _GLUED.split(line.text) if line.text.count(":") > 1 else (line.text,):
            yield Line(line.number, part)


def _shorter(line: Line) -> Line:
    """Return a line without the label of the GPUs if the first GPU is on the same line."""
    return Line(
        line.number, re.sub(r"^.*GPU models and configuration\s*:\s*(?=GPU)", "", line.text, flags=re.IGNORECASE)
    )


COLLECT_ENV = PasteLayout("collect_env", _collected)


def _nvcc(words: str) -> str | None:
    """Return the version of nvcc from one of the last two lines of its output."""
    if match := re.search(r"V(\d+(?:\.\d+)+)", words):
        return match[1]
    match = re.search(r"release (\d+\.\d+)|cuda_(\d+\.\d+)", words)
    return (match[1] or match[2]) if match else None


def _path(words: str) -> str | None:
    return words if words.startswith("/") or re.match(r"[A-Za-z]:\\", words) else None


def _gcc(words: str) -> str | None:
    return None if "clang" in words else compiler(words)


def _clang(words: str) -> str | None:
    return compiler(words) if "clang" in words else None


_DETECTRON2_LABELS: Mapping[str, tuple[Item, Callable[[str], Value]]] = {
    "python": (Item.PYTHON, version),
    "compiler ($cxx)": (Item.GCC, _gcc),
    "compiler": (Item.GCC, _gcc),
    "cuda compiler": (Item.TOOLKIT, _nvcc),
    "pytorch": (Item.PYTORCH, pytorch),
    "gpu available": (Item.CUDA_AVAILABLE, truth),
    "cuda available": (Item.CUDA_AVAILABLE, truth),
    "driver version": (Item.DRIVER, version),
    "cuda_home": (Item.TOOLKIT_PATH, _path),
}
_BARE = r"\s*\S"
_ROW = re.compile(r"^[\s|]*GPU (?P<numbers>\d{1,3}(?:,\s*\d{1,3})*)[\s|]+(?P<name>[A-Za-z].*?)[\s|]*$")


def _detectron2(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    if not {"detectron2", "detectron2._c"} & {
        label for label, _, _ in labelled(lines, ("detectron2", "detectron2._c"), _BARE)
    }:
        return
    yield from from_labels(lines, _DETECTRON2_LABELS, _BARE)
    clangs = [line for line in lines if "clang" in line.text]
    yield from from_labels(clangs, dict.fromkeys(("compiler ($cxx)", "compiler"), (Item.CLANG, _clang)), _BARE)
    yield from gpu_lines([Line(line.number, _ROW.sub(r"GPU \g<numbers>: \g<name>", line.text)) for line in lines])


DETECTRON2 = PasteLayout("detectron2's collect_env", _detectron2)

_MMCV_LABELS: Mapping[str, tuple[Item, Callable[[str], Value]]] = {
    "python": (Item.PYTHON, version),
    "cuda available": (Item.CUDA_AVAILABLE, truth),
    "cuda_home": (Item.TOOLKIT_PATH, _path),
    "nvcc": (Item.TOOLKIT, _nvcc),
    "gcc": (Item.GCC, _gcc),
    "pytorch": (Item.PYTORCH, pytorch),
}
_RUNTIME = re.compile(r"^\s*- CUDA Runtime (?P<version>\d+\.\d+)")


def _mmcv(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    if not any(re.match(r"[\s\-*]*(PyTorch compiling details|MMCV|MMEngine|NVCC)\s*:", line.text) for line in lines):
        return
    yield from from_labels(lines, _MMCV_LABELS)
    yield from from_labels([line for line in lines if "clang" in line.text], {"gcc": (Item.CLANG, _clang)})
    for label, words, number in labelled(lines, ("sys.platform",)):
        if label and words.startswith("win"):
            yield PastedEntry(Item.PLATFORM, "win-64", number)
            yield PastedEntry(Item.WSL, False, number)
    for line in lines:
        if match := _RUNTIME.match(line.text):
            yield PastedEntry(Item.PYTORCH_CUDA, match["version"], line.number)
    yield from gpu_lines(lines)


MMCV = PasteLayout("mmcv's collect_env", _mmcv)


_SECTION = re.compile(r"^[\s*-]*(?P<name>CUDA|GPU|Packages|Lightning|System|architecture)\s*:\s*$", re.IGNORECASE)
_DETAIL = re.compile(r"^[\s*-]*(?P<label>[\w-]+)\s*:\s+(?P<words>\S.*)$")
_SECTIONS = {"cuda", "system"}


def _lightning(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    names = {match["name"].lower() for line in lines if (match := _SECTION.match(line.text))}
    if not names >= _SECTIONS:
        return
    section, gpus, first = "", [], 0
    linux, processor = False, ""
    for line in lines:
        if match := _SECTION.match(line.text):
            section = match["name"].lower()
        elif match := _DETAIL.match(line.text):
            label, words = match["label"].lower(), match["words"].strip()
            section = "cuda" if section == "gpu" else section
            linux = linux or (label == "os" and "linux" in words.lower())
            processor = words if label == "processor" else processor
            yield from _detail(section, label, words, line.number)
        elif section == "gpu" and (name := line.text.strip(" -*")):
            gpus.append(PastedGpu(name))
            first = first or line.number
        if linux and processor and (found := platform(processor)):
            yield PastedEntry(Item.PLATFORM, found, line.number)
            linux = False
    if gpus:
        yield PastedEntry(Item.GPUS, tuple(gpus), first)


def _detail(section: str, label: str, words: str, line: int) -> Iterator[PastedEntry]:
    if section == "cuda" and label == "available":
        yield PastedEntry(Item.CUDA_AVAILABLE, truth(words), line)
    elif section == "cuda" and label == "version":
        yield PastedEntry(Item.PYTORCH_CUDA, version(words), line, words[:40])
    elif label in ("pytorch_version", "torch"):
        yield PastedEntry(Item.PYTORCH, pytorch(words), line, words[:40])
    elif label == "python":
        yield PastedEntry(Item.PYTHON, version(words), line, words[:40])
    elif label == "os":
        yield PastedEntry(Item.OS, words, line)
        yield from kernel(words, line) if "windows" in words.lower() else ()
    elif label == "release":
        yield from kernel(f"Linux {words}", line)


LIGHTNING = PasteLayout("Lightning's details", _lightning)


_DOTTED = re.compile(r"^\s*(?P<label>torch version|torch cuda version|nvcc version) \.{3,}\s*(?P<words>\S.*)$")
_DOTTED_LABELS: Mapping[str, tuple[Item, Callable[[str], Value]]] = {
    "torch version": (Item.PYTORCH, pytorch),
    "torch cuda version": (Item.PYTORCH_CUDA, version),
    "nvcc version": (Item.TOOLKIT, version),
}


def _deepspeed(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    for line in lines:
        if match := _DOTTED.match(line.text):
            item, read = _DOTTED_LABELS[match["label"]]
            if (entry := answer(item, match["words"], line.number, read)) is not None:
                yield entry


DEEPSPEED = PasteLayout("ds_report", _deepspeed)

_JETSON = re.compile(r"jetson[-_](stats|release)|^\W*L4T\s*:\s*\d", re.IGNORECASE)
_JETSON_LABELS: Mapping[str, tuple[Item, Callable[[str], Value]]] = {
    "distribution": (Item.OS, operating_system),
    "cuda": (Item.TOOLKIT, version),
    "python": (Item.PYTHON, version),
}


def _jetson(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    """Yield the values of ``jetson_release``: the module is the GPU, and its CUDA is the installed toolkit."""
    if not any(_JETSON.search(line.text) for line in lines):
        return
    yield from from_labels(lines, _JETSON_LABELS)
    gpus: dict[str, PastedEntry] = {}
    for label, words, number in labelled(lines, ("release", "machine", "module", "model")):
        if label in ("release", "machine"):
            yield from kernel(f"Linux {words}", number)
        elif "NVIDIA" in words:
            name = re.sub(r"\s*\(.*| (Engineering|Developer)\b.*", "", words)
            gpus.setdefault(label, PastedEntry(Item.GPUS, (PastedGpu(name),), number))
    if gpus:
        yield gpus.get("module") or gpus["model"]


JETSON = PasteLayout("jetson_release", _jetson)

_PACKAGE = re.compile(r"(?:^|[\s:\[',\"])__(?P<name>cuda|glibc|linux|win|osx)=(?P<version>[^=\s,'\"\]]+)")
_AGENT = re.compile(
    r"\bLinux/(?P<kernel>\S+)(?:\s+(?P<system>[a-z]+)/(?P<release>[\d.]+))?(?:\s+glibc/(?P<glibc>\d+(\.\d+)+))?"
)
_CONDA_PLATFORM = re.compile(r"(linux|osx|win)-(64|32|aarch64|arm64|ppc64le)")
_CONDA_ITEMS = {"cuda": Item.CUDA, "glibc": Item.GLIBC}


def _conda(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    for line in lines:
        for match in _PACKAGE.finditer(line.text):
            if match["name"] in _CONDA_ITEMS and re.fullmatch(r"\d+(\.\d+)+", match["version"]):
                yield PastedEntry(_CONDA_ITEMS[match["name"]], match["version"], line.number)
            elif match["name"] == "linux":
                yield from kernel(f"linux {match['version']}", line.number)
    labels = ("platform", "python version", "user-agent", "conda version", "virtual packages", "__cuda", "__glibc")
    found = list(labelled(lines, labels))
    if not {"virtual packages", "conda version", "user-agent"} & {label for label, _, _ in found}:
        return
    for label, words, number in found:
        if label == "platform" and _CONDA_PLATFORM.fullmatch(words):
            yield PastedEntry(Item.PLATFORM, words, number)
        elif label == "python version" and (python := re.match(r"\d+\.\d+(\.\d+)?", words)):
            yield PastedEntry(Item.PYTHON, python[0], number)
        elif label == "user-agent" and (agent := _AGENT.search(words)):
            yield from _agent(agent, number)


def _agent(match: "re.Match[str]", line: int) -> Iterator[PastedEntry]:
    yield from kernel(f"Linux {match['kernel']}", line)
    if match["system"]:
        yield PastedEntry(Item.OS, f"{match['system']} {match['release']}", line)
    if match["glibc"]:
        yield PastedEntry(Item.GLIBC, match["glibc"], line)


CONDA_INFO = PasteLayout("conda info", _conda)


_FROZEN = re.compile(r"^\s*(?P<name>[A-Za-z][\w.-]*)==(?P<version>\d[\w.+!-]*)\s*$")
_LISTED = re.compile(r"^\s*(?P<name>[A-Za-z][\w.-]*)\s+(?P<version>\d[\w.+!-]*)(?:\s+\S.*)?$")
_COLUMNS = re.compile(r"^\s*(?P<name>[A-Za-z][\w.-]*) {2,}(?P<version>\d[\w.+!-]*)(?:\s+\S.*)?$")
_HEADER = re.compile(r"^[\s#]*(?:Package|Name)\s+Version\b")
_RULE = re.compile(r"^\s*-+\s+-+")
_PACKAGES = 3
"""How many lines such as ``name==1.0``, or of two columns, make a list of packages."""


def _pip_list(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    """Yield the torch and the wheels of NVIDIA in what ``pip list``, ``pip freeze`` or ``conda list`` prints."""
    rows = [(match["name"].lower(), match["version"], line.number) for line, match in _packages(lines)]
    torches = [row for row in rows if row[0] == "torch"]
    wheels = [row for row in rows if row[0].startswith("nvidia-")]
    for _, found, number in torches:
        yield PastedEntry(Item.PYTORCH, found, number)
    if wheels:
        named = dict.fromkeys(f"{name} {found}" for name, found, _ in wheels)
        yield PastedEntry(Item.WHEELS, ", ".join(named), wheels[0][2])
    if torches and not any("+" in found for _, found, _ in torches):
        for name, found, number in wheels:
            if name.startswith("nvidia-cuda-runtime"):
                yield PastedEntry(Item.PYTORCH_CUDA, ".".join(found.split(".")[:2]), number)


def _packages(lines: Sequence[Line]) -> Iterator[tuple[Line, "re.Match[str]"]]:
    """Yield the rows of a list of packages; a few lines that look alike are none."""
    headed = any(_HEADER.match(line.text) for line in lines)
    for pattern in (_FROZEN,) if headed else (_FROZEN, _COLUMNS):  # without its head where grep took rows of a list
        rows = [(line, match) for line in lines if (match := pattern.match(line.text))]
        yield from rows if len(rows) >= _PACKAGES else ()
    within = False
    for line in lines:
        if _HEADER.match(line.text):
            within = True
        elif within and (match := _LISTED.match(line.text)):
            yield line, match
        elif not _RULE.match(line.text):
            within = False


PIP_LIST = PasteLayout("a list of packages", _pip_list)
