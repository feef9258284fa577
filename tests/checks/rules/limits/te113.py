"""TE113: a libcuda that is missing, or a cuda-compat that no table lists."""

from typing import Any

from tenv.core.missing import Missing, ReasonKind
from tenv.core.versions import Version
from tests.checks.rules.cases import compat

ABSENT = Missing("the loader finds no libcuda.so.1", ReasonKind.NONE)
NEXT = "/usr/local/cuda-14.0/compat/libcuda.so.700.10.02"

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {"compat": ABSENT}
SILENT: list[dict[str, Any]] = [
    {},
    {"compat": ABSENT, "driver": Missing("no driver", ReasonKind.NONE)},
    {"compat": ABSENT, "cuda": None},
    {"compat": Missing("the driver's own", ReasonKind.DRIVERS_OWN)},
    {"compat": compat("/usr/local/cuda-13.1/compat/libcuda.so.590.44.01", "590.44.01")},
]
ALSO: list[dict[str, Any]] = [{"compat": compat(NEXT, "700.10.02"), "driver": Version("580.65.06")}]
