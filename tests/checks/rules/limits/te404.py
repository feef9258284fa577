"""TE404: several C++ compilers."""

from typing import Any

from tests.checks.rules.cases import gxx

SEVERITY = "note"
SPEAKS: dict[str, Any] = {"compilers": (gxx("13.3.0"), gxx("12.3.0", "/usr/bin/g++-12", default=False))}
SILENT: list[dict[str, Any]] = [{}]
