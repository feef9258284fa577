"""Read version output: nvcc, gcc and g++, clang, CMake, ldd, uname."""

import re
from collections.abc import Callable, Iterator, Sequence

from tenv.host.pasted.interface import Item, Line, PasteLayout, Said
from tenv.host.pasted.values import compiler, kernel, version

__all__ = ["COMPILER_OUTPUT"]

_NVCC = re.compile(r"^[\s#$]*Cuda compilation tools, release (?P<release>\d+\.\d+)(?:, V(?P<build>\d+(?:\.\d+)+))?")
_ROWS: tuple[tuple[re.Pattern[str], Item, Callable[[str], str | None]], ...] = (
    (re.compile(r"^\s*(?:\S*-)?(?:gcc|g\+\+|cc|c\+\+)(?:-\d+)?(?:\.exe)? (\(.*\) .*)$"), Item.GCC, compiler),
    (re.compile(r"^\s*gcc version (\d+(?:\.\d+)+.*)$"), Item.GCC, compiler),
    (re.compile(r"^\s*(?:[\w. -]*\s)?clang version (\d+(?:\.\d+)+.*)$"), Item.CLANG, compiler),
    (re.compile(r"^\s*cmake version (\d+(?:\.\d+)+.*)$"), Item.CMAKE, version),
    (re.compile(r"^\s*ldd \(.*\) (\d+\.\d+)\s*$"), Item.GLIBC, version),
)
_UNAME = re.compile(r"^\s*Linux \S+ (?P<kernel>\d+\.\d+\S* .*(?:x86_64|aarch64|ppc64le).*)$")


def _read(lines: Sequence[Line]) -> Iterator[Said]:
    for line in lines:
        if match := _NVCC.match(line.text):
            yield Said(Item.TOOLKIT, match["build"] or match["release"], line.number)
        elif match := _UNAME.match(line.text):
            yield from kernel(f"Linux {match['kernel']}", line.number)
        else:
            for pattern, item, read in _ROWS:
                if (match := pattern.match(line.text)) and (found := read(match[1])):
                    yield Said(item, found, line.number)


COMPILER_OUTPUT = PasteLayout("nvcc --version and its like", _read)
