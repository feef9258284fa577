"""Read PyTorch's ``collect_env`` of all releases, and vLLM's, which has sections and aligned colons."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from tenv.host.pasted.interface import Item, Line, PasteLayout, Said, Value
from tenv.host.pasted.values import (
    compiler,
    from_labels,
    gcc,
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

__all__ = ["COLLECT_ENV", "WARNING"]


_LABELS: Mapping[str, tuple[Item, Callable[[str], Value]]] = {
    "pytorch version": (Item.PYTORCH, pytorch),
    "cuda used to build pytorch": (Item.PYTORCH_CUDA, version),
    "os": (Item.OS, operating_system),
    "gcc version": (Item.GCC, gcc),
    "clang version": (Item.CLANG, compiler),
    "cmake version": (Item.CMAKE, version),
    "libc version": (Item.GLIBC, version),
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
_BARE = r"\s*v?\d"
_MODELS = "gpu models and configuration"
_GLUED = re.compile(
    r"\s+(?=(?:Is debug build|CUDA used to build PyTorch|ROCM used to build PyTorch|OS|GCC version|Clang version|"
    r"CMake version|Libc version|Python version|Python platform|Is CUDA available|CUDA runtime version|"
    r"GPU models and configuration|Nvidia driver version|cuDNN version) ?: )"
)


def _read(lines: Sequence[Line]) -> Iterator[Said]:
    apart = list(_apart(lines))
    seen = {label for label, _, _ in labelled(apart, _OWN, r"\s*")}
    if len(seen) < _ENOUGH:
        return
    yield from from_labels(apart, _LABELS, _BARE)
    for label, words, number in labelled(apart, ("os", "python platform", "architecture", "cpu(s)", _MODELS)):
        if label == "os" and (found := platform(words)):
            yield Said(Item.PLATFORM, found, number)
            if found == "win-64":
                yield Said(Item.WSL, False, number)
        elif label == "python platform":
            yield from kernel(words, number)
        elif label == "cpu(s)" and _CORES.fullmatch(words):
            yield Said(Item.CORES, words, number)
        elif label == _MODELS and lacking(words):
            yield Said(Item.GPUS, None, number, words[:40])
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


COLLECT_ENV = PasteLayout("collect_env", _read)

_TOO_OLD = re.compile(r"driver on your system is too old \(found version (?P<number>\d{4,6})\)")


def _warning(lines: Sequence[Line]) -> Iterator[Said]:
    for line in lines:
        if match := _TOO_OLD.search(line.text):
            number = int(match["number"])
            yield Said(Item.CUDA, f"{number // 1000}.{number % 1000 // 10}", line.number)


WARNING = PasteLayout("PyTorch's warning of an old driver", _warning)
