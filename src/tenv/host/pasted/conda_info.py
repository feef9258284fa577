"""Read ``conda info``, ``mamba info``, ``micromamba info`` and ``pixi info``."""

import re
from collections.abc import Iterator, Sequence

from tenv.host.pasted.interface import Item, Line, PasteLayout, Said
from tenv.host.pasted.values import kernel, labelled

__all__ = ["CONDA_INFO"]

_PACKAGE = re.compile(r"(?:^|[\s:\[',\"])__(?P<name>cuda|glibc|linux|win|osx)=(?P<version>[^=\s,'\"\]]+)")
_AGENT = re.compile(
    r"\bLinux/(?P<kernel>\S+)(?:\s+(?P<system>[a-z]+)/(?P<release>[\d.]+))?(?:\s+glibc/(?P<glibc>\d+(\.\d+)+))?"
)
_PLATFORM = re.compile(r"(linux|osx|win)-(64|32|aarch64|arm64|ppc64le)")
_ITEMS = {"cuda": Item.CUDA, "glibc": Item.GLIBC}


def _read(lines: Sequence[Line]) -> Iterator[Said]:
    for line in lines:
        for match in _PACKAGE.finditer(line.text):
            if match["name"] in _ITEMS and re.fullmatch(r"\d+(\.\d+)+", match["version"]):
                yield Said(_ITEMS[match["name"]], match["version"], line.number)
            elif match["name"] == "linux":
                yield from kernel(f"linux {match['version']}", line.number)
    labels = ("platform", "python version", "user-agent", "conda version", "virtual packages", "__cuda", "__glibc")
    found = list(labelled(lines, labels))
    if not {"virtual packages", "conda version", "user-agent"} & {label for label, _, _ in found}:
        return
    for label, words, number in found:
        if label == "platform" and _PLATFORM.fullmatch(words):
            yield Said(Item.PLATFORM, words, number)
        elif label == "python version" and (python := re.match(r"\d+\.\d+(\.\d+)?", words)):
            yield Said(Item.PYTHON, python[0], number)
        elif label == "user-agent" and (agent := _AGENT.search(words)):
            yield from _agent(agent, number)


def _agent(match: "re.Match[str]", line: int) -> Iterator[Said]:
    yield from kernel(f"Linux {match['kernel']}", line)
    if match["system"]:
        yield Said(Item.OS, f"{match['system']} {match['release']}", line)
    if match["glibc"]:
        yield Said(Item.GLIBC, match["glibc"], line)


CONDA_INFO = PasteLayout("conda info", _read)
