"""TE406: a compiler that PyTorch fails with."""

from dataclasses import replace
from typing import Any

from tests.checks.rules.cases import gxx

SEVERITY = "error"
SPEAKS: dict[str, Any] = {
    "cuda": None,
    "torch": "2.7.1",
    "compilers": (gxx("15.1.1"), gxx("14.3.0", "/usr/bin/g++-14", default=False)),
}
SILENT: list[dict[str, Any]] = [
    {"cuda": None, "torch": "2.9.0", "compilers": (gxx("15.1.1"),)},
    {"cuda": None, "torch": "2.9.1", "compilers": (gxx("15.2.0"),)},
    {"cuda": None, "torch": "2.10.0", "compilers": (gxx("15.2.0"),)},
    {"cuda": None, "torch": "2.7.1", "compilers": (gxx("14.3.0"),)},
    {"cuda": None, "torch": "2.7.1", "compilers": (gxx("15.1.1", "/usr/bin/clang++", kind="clang++"),)},
    {"cuda": None, "torch": "2.7.1", "compilers": (gxx("14.3.0"), replace(gxx("15.1.1"), default=False))},
    {"cuda": None, "compilers": (gxx("15.1.1"),)},  # no revision is named
]
ALSO: list[dict[str, Any]] = [
    {"cuda": "13.0", "torch": "2.8.0", "compilers": (gxx("15.2.0"),)},
    {"cuda": None, "torch": "2.5.1", "compilers": (gxx("15.0.1"),)},
]
