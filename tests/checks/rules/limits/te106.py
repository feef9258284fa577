"""TE106: a libcuda that does not match the driver."""

from typing import Any

from tests.checks.rules.cases import compat

OLD_COMPAT = "/usr/local/cuda-12.4/compat/libcuda.so.550.54.14"

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"compat": compat(OLD_COMPAT, "550.54.14")}
SILENT: list[dict[str, Any]] = [
    {},
    {"compat": compat(OLD_COMPAT, "580.65.06")},
    {"compat": compat(OLD_COMPAT, "550.54.14"), "cuda": None},
]
