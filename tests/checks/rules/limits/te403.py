"""TE403: a compiler that is too old."""

from typing import Any

from tests.checks.rules.cases import gxx

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "12.1", "torch": "2.4.1", "compilers": (gxx("7.5.0"),)}
SILENT: list[dict[str, Any]] = [
    {"cuda": "12.1", "torch": "2.4.1", "compilers": (gxx("9.4.0"),)},
    {"cuda": "12.1", "compilers": (gxx("7.5.0"),)},
]
ALSO: list[dict[str, Any]] = [
    {"platform": "win-64", "compilers": (gxx("19.16.27", "C:/VC/bin/cl.exe", kind="msvc"),)},
]
