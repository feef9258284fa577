"""TE504: a compiler and a sysroot of different origins."""

from typing import Any

from tests.checks.rules.cases import conda

CONDA_GXX = conda("gxx_linux-64", "12.4.0", "sysroot_linux-64")
SYSROOT = conda("sysroot_linux-64", "2.17")

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {"cuda": "12.1", "conda": (CONDA_GXX,)}
SILENT: list[dict[str, Any]] = [{"conda": (CONDA_GXX, SYSROOT)}, {"conda": (SYSROOT,)}, {}]
