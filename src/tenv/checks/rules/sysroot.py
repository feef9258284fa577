"""Check that the compiler and its sysroot, the C library's headers, have the same origin.

conda-forge's gcc with the system's headers builds programs that need the system's glibc. A system gcc with
conda-forge's headers searches for startup files that do not exist.
"""

import re
from collections.abc import Iterator

from tenv.checks.rules.common import on_windows
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.host.interface import Missing
from tenv.host.report import Lead

__all__ = ["ORIGINS", "other_origin"]

ORIGINS = "TE504"

_COMPILER = re.compile(r"(gcc|gxx|clang|clangxx)(_impl)?_linux-\w+|gcc|gxx|(c|cxx)-compiler|compilers")
_SYSROOT = re.compile(r"sysroot_linux-\w+")
_VARIABLES = {Lead.CC: "CC", Lead.CXX: "CXX", Lead.CUDAHOSTCXX: "CUDAHOSTCXX"}
_SOURCE = "conda-forge's gcc_linux-64 and gxx_linux-64 depend on sysroot_linux-64"


def other_origin(case: Case) -> Iterator[Finding]:
    """Yield a warning if a target's compiler and its sysroot have different origins."""
    if on_windows(case) or case.lock is None:
        return
    packages = {package.name: package for package in case.lock.conda.get(case.platform, ())}
    compiler = next((package for name, package in packages.items() if _COMPILER.fullmatch(name)), None)
    sysroot = next((package for name, package in packages.items() if _SYSROOT.fullmatch(name)), None)
    if compiler and not sysroot:
        name = f"sysroot_{case.platform}"
        yield _finding(
            subject=f"{compiler.name} {compiler.version}",
            message=f"comes without {name}, so it compiles with the system's glibc, which it is not built for",
            evidence=f"{compiler.url}; no {name} in the lock of `{case.lock.target}`",
            fix=f'set {name} = "{case.manifest.requirements.glibc or "2.17"}.*" in [dependencies] and lock again',
        )
    if compiler and sysroot:
        yield from _named_elsewhere(case, compiler.name)


def _named_elsewhere(case: Case, own: str) -> Iterator[Finding]:
    """Yield a warning for each variable that names a system compiler if the target brings its own."""
    found = [] if isinstance(case.host.compilers, Missing) else case.host.compilers.value
    for compiler in found:
        named = [name for kind, name in _VARIABLES.items() if compiler.led_by(kind)]
        if named and "-conda-" not in compiler.path.rpartition("/")[2]:
            yield _finding(
                subject=", ".join(named),
                message=(
                    f"names {compiler.path}, a compiler outside the environment, but the target brings {own} with "
                    "its own sysroot: object files of the two do not link"
                ),
                evidence=f"{compiler.path} ({compiler.ways})",
                fix=f"unset {' '.join(named)} , then activate the environment, which sets its own compilers",
            )


def _finding(subject: str, message: str, evidence: str, fix: str) -> Finding:
    return Finding(ORIGINS, Severity.WARNING, subject, message, evidence, _SOURCE, fix)
