"""Warnings of newer GCCs that end the build of a dependency, kept as warnings.

FBGEMM compiles with ``-Werror``, and GCC 12 takes the undefined upper halves in its own AVX-512 headers for values that
are used uninitialized (https://gcc.gnu.org/bugzilla/show_bug.cgi?id=105593): UtilsAvx512.cc, QuantUtilsAvx512.cc and
FbgemmBfloat16ConvertAvx512.cc fail at each of six commits from 2022 on, that of PyTorch 2.4 among them, with GCC 12.2,
which needs both options; GCC 11.3 needs none. Others report it of GCC 12.1 to 14 (pytorch/pytorch#77939, #104519,
#129358, #150846).
"""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from tenv.builds.switches import is_off
from tenv.core import process
from tenv.core.file_content import read_text
from tenv.core.missing import Missing

__all__ = ["OPTIONS", "warning_flags"]

OPTIONS = ("-Wno-error=maybe-uninitialized", "-Wno-error=uninitialized")
_FIRST = 12
"""The first major version of GCC with such warnings."""

_MACRO = re.compile(r"^#define (\w+) ?(.*)$", re.MULTILINE)
_SECONDS = 20.0


def warning_flags(checkout: Path, environ: Mapping[str, str]) -> str:
    """Return the CXXFLAGS with which FBGEMM compiles; those of `environ` where it needs no more.

    Args:
        checkout: The PyTorch checkout.
        environ: The environment of the build.
    """
    flags = environ.get("CXXFLAGS", "")
    try:
        given, compiler = shlex.split(flags), shlex.split(environ.get("CXX", "") or "c++")
    except ValueError:  # a quotation that does not end: the build itself will say so
        return flags
    missing = [option for option in OPTIONS if option not in given and "-Wno-error" not in given]
    if not missing or is_off(environ.get("USE_FBGEMM", "1")) or not _stops_at_warnings(checkout):
        return flags
    words = [*compiler, "-dM", "-E", "-x", "c++", os.devnull]
    said = process.run(words, environment=environ, timeout=_SECONDS)
    macros = {} if isinstance(said, Missing) or said.status else dict(_MACRO.findall(said.stdout))
    is_gcc = "__clang__" not in macros and macros.get("__GNUC__", "").isdigit()
    if is_gcc and int(macros["__GNUC__"]) >= _FIRST and "__x86_64__" in macros:
        return " ".join([*filter(None, [flags]), *missing])
    return flags


def _stops_at_warnings(checkout: Path) -> bool:
    try:
        return "-Werror" in read_text(checkout / "third_party" / "fbgemm" / "CMakeLists.txt")
    except (OSError, ValueError):
        return False
