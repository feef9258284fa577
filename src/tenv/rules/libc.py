"""Whether the C and the C++ library of the machine suit the target.

The headers of older toolkits declare functions that newer glibc headers declare too, in another way. What was compiled
with a newer GCC than the loader's libstdc++ comes from ends at its start with ``GLIBCXX_3.4.x not found``.
"""

from collections.abc import Iterator

from tenv.host.interface import Missing
from tenv.host.machine import NOT_GNU
from tenv.rules.common import cuda_of, doubt, on_windows, own_compiler, taken_compiler
from tenv.rules.interface import Case, Finding, Severity

__all__ = ["HEADERS", "LIBSTDCXX", "TOO_OLD", "glibc_headers", "glibc_too_old", "libstdcxx_too_old"]

HEADERS = "TE501"
TOO_OLD = "TE502"
LIBSTDCXX = "TE503"

_STATIC_RUNTIME = ("/opt/rh/",)
"""Red Hat's toolsets link what the system's libstdc++ lacks into the program."""


def glibc_headers(case: Case) -> Iterator[Finding]:
    """Yield an error where the toolkit's headers do not compile with those of the C library."""
    libc, cuda = case.host.libc, cuda_of(case)
    if cuda is None or on_windows(case) or own_compiler(case) or isinstance(libc, Missing):
        return
    conflict = case.facts.cuda_host_compiler.glibc_conflict(cuda, libc.value)
    if conflict is None:
        return
    yield Finding(
        code=HEADERS,
        severity=Severity.ERROR,
        subject=f"glibc {libc.value}",
        message=(
            f"nothing compiles with the headers of CUDA {cuda} and those of this glibc: from {conflict.glibc} on both "
            f"declare {', '.join(conflict.functions)}{doubt(conflict.basis)}"
        ),
        evidence=f"glibc {libc.value} ({libc.origin})",
        source=conflict.basis.source,
        fix=(
            f"choose a target with a CUDA newer than {conflict.last}, or build in a container with a glibc older than "
            f"{conflict.glibc}"
        ),
    )


def glibc_too_old(case: Case) -> Iterator[Finding]:
    """Yield an error where the C library is older than what the target asks for."""
    libc, wanted = case.host.libc, case.manifest.requirements.glibc
    if wanted is None or on_windows(case):
        return
    if isinstance(libc, Missing):
        subject, evidence, too_old = "the C library", libc.reason, libc.reason.startswith(NOT_GNU)
    else:
        subject, evidence = f"glibc {libc.value}", f"glibc {libc.value} ({libc.origin})"
        too_old = libc.value < wanted
    if too_old:
        yield Finding(
            code=TOO_OLD,
            severity=Severity.ERROR,
            subject=subject,
            message=f"the packages of the target need glibc {wanted} or newer: they neither install nor start here",
            evidence=evidence,
            source=f"requirements.glibc of {case.manifest.file}",
            fix=f"use a distribution, or a container, with glibc {wanted} or newer",
        )


def libstdcxx_too_old(case: Case) -> Iterator[Finding]:
    """Yield an error where the loader's libstdc++ is older than the one of the compiler that is taken."""
    compiler, library = taken_compiler(case), case.host.libstdcxx
    if compiler is None or compiler.kind != "g++" or isinstance(library, Missing):
        return
    needs = case.facts.libstdcxx.for_gcc(compiler.version)
    if needs is None or needs.glibcxx <= library.value.glibcxx or compiler.path.startswith(_STATIC_RUNTIME):
        return
    yield Finding(
        code=LIBSTDCXX,
        severity=Severity.ERROR,
        subject=f"libstdc++ of {library.value.path}",
        message=(
            f"is older than g++ {compiler.version}: what that compiles may end at its start with "
            f"`version 'GLIBCXX_{needs.glibcxx}' not found`; this library ends with GLIBCXX_{library.value.glibcxx}"
            f"{doubt(needs.basis)}"
        ),
        evidence=f"{library.value.path} ({library.origin}); {compiler.path} ({compiler.found_by})",
        source=needs.basis.source,
        fix="put the folder of the compiler's own libstdc++.so.6 first in LD_LIBRARY_PATH, or take an older g++ (CXX)",
    )
