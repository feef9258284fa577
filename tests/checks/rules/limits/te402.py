"""TE402: a compiler that nvcc rejects."""

from typing import Any

from tests.checks.rules.cases import gxx

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "12.6", "compilers": (gxx("14.2.0"), gxx("13.3.0", "/usr/bin/g++-13", default=False))}
SILENT: list[dict[str, Any]] = [
    {"cuda": "12.6"},
    {"compilers": (gxx("15.2.0"),)},
    {"cuda": None, "compilers": (gxx("16.1.0"),)},
]
ALSO: list[dict[str, Any]] = [
    {"platform": "win-64", "compilers": (gxx("19.50.1", "C:/VC/bin/cl.exe", kind="msvc"),)},
]
