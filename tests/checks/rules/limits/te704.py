"""TE704: a debugger without permission to attach."""

from typing import Any

from tenv.core.versions import CondaRange
from tenv.host.interface import Missing
from tenv.targets.manifest import CondaRequest
from tests.checks.rules.cases import conda

DEBUG: dict[str, Any] = {"dependencies": {"cuda-gdb": CondaRequest(CondaRange("12.1.*"))}}

SEVERITY = "note"
SPEAKS: dict[str, Any] = {"manifest": DEBUG, "ptrace_scope": 1}
SILENT: list[dict[str, Any]] = [
    {"manifest": DEBUG, "ptrace_scope": 0},
    {"manifest": DEBUG, "ptrace_scope": Missing("no Yama")},
    {"conda": (conda("cuda-gdb", "12.1.105"),), "ptrace_scope": 3},
    {"ptrace_scope": 3},
]
