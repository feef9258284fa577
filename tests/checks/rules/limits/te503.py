"""TE503: a libstdc++ older than the g++."""

from dataclasses import replace
from typing import Any

from tenv.core.versions import Version
from tenv.host.interface import Missing
from tenv.host.report import Libstdcxx
from tests.checks.rules.cases import gxx

OLD_LIBRARY = Libstdcxx("/usr/lib64/libstdc++.so.6.0.29", Version("3.4.29"), Version("1.3.13"))
OF_CONDA = replace(OLD_LIBRARY, path="/home/me/miniconda3/envs/np/lib/libstdc++.so.6.0.29")

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"compilers": (gxx("12.3.0"),), "libstdcxx": OLD_LIBRARY}
SILENT: list[dict[str, Any]] = [
    {"compilers": (gxx("11.4.0"),), "libstdcxx": OF_CONDA, "libc": Version("2.34")},
    {"compilers": (gxx("11.4.0"),), "libstdcxx": OLD_LIBRARY, "libc": Version("2.35")},
    {"compilers": (gxx("11.4.0", "/opt/gcc/bin/g++"),), "libstdcxx": OF_CONDA, "libc": Version("2.35")},
    {"compilers": (replace(gxx("12.3.0"), glibcxx=Version("3.4.29")),), "libstdcxx": OLD_LIBRARY},
    {"compilers": (gxx("12.2.1", "/opt/rh/gcc-toolset-12/root/usr/bin/g++"),), "libstdcxx": OLD_LIBRARY},
    {"libstdcxx": Missing("no")},
]
ALSO: list[dict[str, Any]] = [
    {"compilers": (gxx("11.4.0"),), "libstdcxx": OF_CONDA, "libc": Version("2.35")},
    {"compilers": (replace(gxx("11.4.0"), glibcxx=Version("3.4.30")),), "libstdcxx": OLD_LIBRARY},
]
