"""TE403: a compiler that is too old."""

from dataclasses import replace
from typing import Any

from tests.checks.rules.cases import gxx

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "12.1", "torch": "2.4.1", "compilers": (gxx("7.5.0"),)}


def of_nvcc(version: str) -> Any:
    """Return a gcc that nvcc finds, which CXX does not name."""
    return replace(gxx(version, "/usr/bin/g++-old", default=False), nvcc=True)


SILENT: list[dict[str, Any]] = [
    {"cuda": "12.1", "torch": "2.4.1", "compilers": (gxx("9.4.0"),)},
    {"cuda": "12.1", "compilers": (gxx("7.5.0"),)},
]
SILENT += [
    {"cuda": "12.1", "torch": "2.4.1", "compilers": (gxx("11.4.0"), of_nvcc("9.3.0"))},  # the headers look at the major
    {"cuda": None, "torch": "2.4.1", "compilers": (gxx("11.4.0"), of_nvcc("7.5.0"))},  # nothing is compiled by nvcc
]
ALSO: list[dict[str, Any]] = [
    {"cuda": "12.1", "torch": "2.4.1", "compilers": (gxx("11.4.0"), of_nvcc("7.5.0"))},
    {"platform": "win-64", "compilers": (gxx("19.16.27", "C:/VC/bin/cl.exe", kind="msvc"),)},
]
