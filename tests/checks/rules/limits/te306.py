"""TE306: headers of one release and libraries of another."""

from typing import Any

from tests.checks.rules.cases import conda

SYSROOT = conda("sysroot_linux-64", "2.17")

SEVERITY = "error"
SPEAKS: dict[str, Any] = {
    "cuda": "12.1",
    "conda": (conda("libcublas", "12.8.4.1"), conda("libcublas-dev", "12.1.0.26", channel="nvidia")),
}
SILENT: list[dict[str, Any]] = [
    {"conda": (conda("libcublas", "12.1.0.26"), conda("libcublas-dev", "12.1.0.26"))},
    {"conda": (SYSROOT,)},
]
