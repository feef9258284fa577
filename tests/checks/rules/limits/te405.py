"""TE405: a compiler that breaks nvcc."""

from typing import Any

from tenv.core.versions import Version
from tests.checks.rules.cases import gxx

SEVERITY = "error"
SPEAKS: dict[str, Any] = {
    "cuda": "11.5",
    "compilers": (gxx("11.4.0", "/usr/bin/g++-11"), gxx("10.5.0", "/usr/bin/g++-10", default=False)),
}
SILENT: list[dict[str, Any]] = [
    {"cuda": "11.7", "compilers": (gxx("11.4.0"),)},
    {"cuda": "11.5", "compilers": (gxx("11.2.0", "/opt/gcc/bin/g++"),)},
    {"cuda": "11.5", "compilers": (gxx("11.2.0"),), "libc": Version("2.28")},
    {"cuda": "11.5", "compilers": (gxx("10.5.0"),)},
    {"cuda": "9.2", "compilers": (gxx("6.4.0"),)},
    {"cuda": "11.2", "compilers": (gxx("10.2.1"),), "libc": Version("2.31")},
    {"cuda": "11.2", "compilers": (gxx("10.4.0"),), "libc": Version("2.31")},
    {"cuda": "9.1", "compilers": (gxx("5.4.0"),)},
    {"cuda": None, "compilers": (gxx("11.4.0"),)},
]
ALSO: list[dict[str, Any]] = [
    {"cuda": "11.6", "compilers": (gxx("11.2.1"),)},
    {"cuda": "11.5", "compilers": (gxx("11.2.0"),), "libc": Version("2.35")},
    {"cuda": "9.1", "compilers": (gxx("6.4.0"),)},
    {"cuda": "11.2", "compilers": (gxx("10.3.1"),), "libc": Version("2.32")},
]
