"""TE112: code that the driver can't read."""

from typing import Any

from tenv.core.versions import Version
from tenv.host.interface import Fact, Missing
from tests.checks.rules.cases import compat

OLD = Version("535.104.12")
SIZE = {"TORCH_NVCC_FLAGS": "-Xfatbin -compress-all -compress-mode=size"}

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "12.8", "driver": OLD, "manifest": {"environment": SIZE}}
SILENT: list[dict[str, Any]] = [
    {"cuda": "12.8", "driver": OLD},
    {"cuda": "12.8", "driver": Version("550.54.14"), "exported": SIZE},
    {"cuda": "12.8", "driver": OLD, "exported": {"TORCH_NVCC_FLAGS": "-Xfatbin -compress-all"}},
    {"cuda": "12.8", "driver": OLD, "exported": {"NVCC_APPEND_FLAGS": "--compress-mode=speed"}},
    {"cuda": "12.8", "driver": OLD, "exported": {"NVCC_APPEND_FLAGS": "--compress-mode=size --compress-mode=none"}},
    {"cuda": "12.8", "driver": OLD, "exported": SIZE, "manifest": {"environment": {"TORCH_NVCC_FLAGS": "--threads 2"}}},
    {"cuda": "12.8", "driver": OLD, "exported": SIZE, "compat": Fact(compat("/c/compat/libcuda.so.1", "570.26"), "x")},
    {"cuda": "12.8", "driver": Missing("no driver"), "exported": SIZE},
    {"cuda": None, "driver": OLD, "exported": SIZE},
]
ALSO: list[dict[str, Any]] = [
    {"cuda": "12.8", "driver": Version("550.40.07"), "exported": SIZE},
    {"cuda": "12.9", "driver": OLD, "exported": {"NVCC_APPEND_FLAGS": "-lineinfo --compress-mode balance"}},
    {"cuda": "12.8", "driver": OLD, "exported": {"NVCC_PREPEND_FLAGS": "-compress-mode=size"}},
    {"cuda": "12.8", "driver": Version("537.13"), "platform": "win-64", "exported": SIZE},
]
