"""Read a toolkit's own headers: the accepted host compilers, and the functions declared as in newer glibc."""

import re
from collections.abc import Iterator
from pathlib import Path

from tenv.host.interface import Missing
from tenv.host.places import read
from tenv.host.report import CompilerLimits

__all__ = ["FUNCTIONS", "compiler_limits", "parse_host_config", "parse_math_functions", "patched"]

FUNCTIONS = ("cospi", "cospif", "rsqrt", "rsqrtf", "sinpi", "sinpif")
"""The functions that both ``crt/math_functions.h`` and the ``<math.h>`` of glibc 2.41 and later declare."""

_GCC = re.compile(r"^#if\s+\(?__GNUC__\s*>\s*(\d+)", re.MULTILINE)
# At the start of a line: the bounds for the clang of NVIDIA's Grace are indented.
_CLANG = re.compile(r"^#if\s+\(*__clang_major__\s*(>=?)\s*(\d+)", re.MULTILINE)
_MSVC = re.compile(r"^#if\s+_MSC_VER\s*<\s*(\d+)\s*\|\|\s*_MSC_VER\s*>=\s*(\d+)", re.MULTILINE)
# The declaration that `<math.h>` must agree with: `extern … double rsqrt(double x) noexcept(true);`, or a macro there.
_DECLARED = re.compile(
    rf"^extern\b[^;(\n]*\b(?P<name>{'|'.join(FUNCTIONS)})\((?:double|float)\s+\w+\)(?P<specifier>[^;\n]*);",
    re.MULTILINE,
)


def parse_host_config(text: str, file: str) -> CompilerLimits | None:
    """Return the bounds outside which a ``crt/host_config.h`` has an ``#error``; None for other texts."""
    gcc, clang, msvc = _GCC.search(text), _CLANG.search(text), _MSVC.search(text)
    if not (gcc or clang or msvc):
        return None
    return CompilerLimits(
        file,
        gcc_max=int(gcc[1]) if gcc else None,
        clang_max=int(clang[2]) - (clang[1] == ">=") if clang else None,
        msvc_min=int(msvc[1]) if msvc else None,
        msvc_below=int(msvc[2]) if msvc else None,
    )


def compiler_limits(root: Path) -> CompilerLimits | None:
    """Return the bounds of the host compilers of the toolkit in a folder; None if no header has them."""
    for file in _headers(root, "host_config.h"):
        text = read(file)
        if not isinstance(text, Missing) and (found := parse_host_config(text, str(file))):
            return found
    return None


def parse_math_functions(text: str) -> tuple[str, ...]:
    """Return the functions that a ``crt/math_functions.h`` declares with an exception specification, as glibc does.

    Newer toolkits do so; older ones are patched by distributions or by hand.
    """
    return tuple(sorted({match["name"] for match in _DECLARED.finditer(text) if match["specifier"].strip()}))


def patched(root: Path) -> tuple[str, ...]:
    """Return what the ``crt/math_functions.h`` of the toolkit in a folder declares as a newer glibc does."""
    for file in _headers(root, "math_functions.h"):
        text = read(file)
        if not isinstance(text, Missing):
            return parse_math_functions(text)
    return ()


def _headers(root: Path, name: str) -> Iterator[Path]:
    for folder in (root, *sorted(root.glob("targets/*"))):
        yield folder / "include" / "crt" / name
