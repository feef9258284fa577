"""TE501: a glibc that breaks the toolkit's headers."""

from typing import Any

from tenv.core.versions import Version
from tenv.host.interface import Missing
from tests.checks.rules.cases import gxx, toolkit

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"cuda": "12.6", "libc": Version("2.41")}
SILENT: list[dict[str, Any]] = [
    {"cuda": "12.6", "libc": Version("2.40")},
    {"libc": Version("2.41")},
    {"libc": Missing("no")},
    {"cuda": "12.5", "libc": Version("2.39"), "platform": "linux-aarch64"},
    {"cuda": "12.4", "libc": Version("2.37"), "platform": "linux-aarch64"},
    {"cuda": "12.4", "libc": Version("2.39"), "platform": "linux-64"},
    {"cuda": "11.4", "libc": Version("2.39"), "platform": "linux-aarch64", "compilers": (gxx("8.4.0"),)},
    {
        "cuda": "13.0",
        "libc": Version("2.42"),
        "toolkits": (toolkit("/usr/local/cuda", "13.0.1", "nvcc on PATH", patched=("rsqrt", "rsqrtf")),),
    },
]
ALSO: list[dict[str, Any]] = [
    {"cuda": "12.4", "libc": Version("2.39"), "platform": "linux-aarch64"},
    {"cuda": "13.0", "libc": Version("2.42")},
    {
        "cuda": "12.8",
        "libc": Version("2.42"),
        "toolkits": (toolkit("/usr/local/cuda", "12.8.1", "nvcc on PATH", patched=("rsqrt", "rsqrtf")),),
    },
]
