"""Whether the compiler and the C library's headers that it compiles with (its sysroot) are of one origin.

A gcc of conda-forge with the system's headers makes programs that need the system's glibc, and a system's gcc with
conda-forge's headers looks for startup files that are not there.
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
_SOURCE = "conda-forge's gcc_linux-64 and gxx_linux-64 depend on sysroot_linux-64 and are made for it"


def other_origin(case: Case) -> Iterator[Finding]:
    """Yield a warning where a target's compiler and its sysroot are not of one origin."""
    if on_windows(case) or case.lock is None:
        return
    packages = {package.name: package for package in case.lock.conda.get(case.platform, ())}
    compiler = next((package for name, package in packages.items() if _COMPILER.fullmatch(name)), None)
    sysroot = next((package for name, package in packages.items() if _SYSROOT.fullmatch(name)), None)
    if compiler and not sysroot:
        name = f"sysroot_{case.platform}"
        yield _finding(
            subject=f"{compiler.name} {compiler.version}",
            message=f"comes without {name}: it compiles with the glibc of the system, for which it is not made",
            evidence=f"{compiler.url}; no {name} in the lock of `{case.lock.target}`",
            fix=f'ask for {name} = "{case.manifest.requirements.glibc or "2.17"}.*" in [dependencies], and lock again',
        )
    if compiler and sysroot:
        yield from _named_elsewhere(case, compiler.name)


def _named_elsewhere(case: Case, own: str) -> Iterator[Finding]:
    """Yield a warning on each variable that names a compiler of the system, where the target brings its own."""
    found = [] if isinstance(case.host.compilers, Missing) else case.host.compilers.value
    for compiler in found:
        named = [name for kind, name in _VARIABLES.items() if compiler.led_by(kind)]
        if named and "-conda-" not in compiler.path.rpartition("/")[2]:
            yield _finding(
                subject=", ".join(named),
                message=(
                    f"names {compiler.path}, a compiler from outside the environment, and the target brings {own} with "
                    "a sysroot of its own: files of the two do not link"
                ),
                evidence=f"{compiler.path} ({compiler.ways})",
                fix=f"unset {' '.join(named)} before the environment is activated, which sets what it needs",
            )


def _finding(subject: str, message: str, evidence: str, fix: str) -> Finding:
    return Finding(ORIGINS, Severity.WARNING, subject, message, evidence, _SOURCE, fix)
