"""Read the tables of detectron2's and mmcv's ``collect_env``."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from tenv.host.pasted.interface import Item, Line, PasteLayout, Said, Value
from tenv.host.pasted.values import compiler, from_labels, gpu_lines, labelled, pytorch, truth, version

__all__ = ["DETECTRON2", "MMCV"]


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


_TABLE: Mapping[str, tuple[Item, Callable[[str], Value]]] = {
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


def _detectron2(lines: Sequence[Line]) -> Iterator[Said]:
    if not {"detectron2", "detectron2._c"} & {
        label for label, _, _ in labelled(lines, ("detectron2", "detectron2._c"), _BARE)
    }:
        return
    yield from from_labels(lines, _TABLE, _BARE)
    clangs = [line for line in lines if "clang" in line.text]
    yield from from_labels(clangs, dict.fromkeys(("compiler ($cxx)", "compiler"), (Item.CLANG, _clang)), _BARE)
    yield from gpu_lines([Line(line.number, _ROW.sub(r"GPU \g<numbers>: \g<name>", line.text)) for line in lines])


DETECTRON2 = PasteLayout("detectron2's collect_env", _detectron2)

_LIST: Mapping[str, tuple[Item, Callable[[str], Value]]] = {
    "python": (Item.PYTHON, version),
    "cuda available": (Item.CUDA_AVAILABLE, truth),
    "cuda_home": (Item.TOOLKIT_PATH, _path),
    "nvcc": (Item.TOOLKIT, _nvcc),
    "gcc": (Item.GCC, _gcc),
    "pytorch": (Item.PYTORCH, pytorch),
}
_RUNTIME = re.compile(r"^\s*- CUDA Runtime (?P<version>\d+\.\d+)")


def _mmcv(lines: Sequence[Line]) -> Iterator[Said]:
    if not any(re.match(r"[\s\-*]*(PyTorch compiling details|MMCV|MMEngine|NVCC)\s*:", line.text) for line in lines):
        return
    yield from from_labels(lines, _LIST)
    yield from from_labels([line for line in lines if "clang" in line.text], {"gcc": (Item.CLANG, _clang)})
    for label, words, number in labelled(lines, ("sys.platform",)):
        if label and words.startswith("win"):
            yield Said(Item.PLATFORM, "win-64", number)
            yield Said(Item.WSL, False, number)
    for line in lines:
        if match := _RUNTIME.match(line.text):
            yield Said(Item.PYTORCH_CUDA, match["version"], line.number)
    yield from gpu_lines(lines)


MMCV = PasteLayout("mmcv's collect_env", _mmcv)
