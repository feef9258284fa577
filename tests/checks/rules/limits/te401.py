"""TE401: no C++ compiler."""

from typing import Any

from tenv.host.interface import Missing
from tests.checks.rules.cases import gxx

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"compilers": ()}
SILENT: list[dict[str, Any]] = [
    {},
    {"compilers": Missing("no")},
    {"compilers": (gxx("18.1", "/usr/bin/clang++", kind="clang++"),)},
]
