"""Check for a GCC that passes nvcc's ``crt/host_config.h`` but fails later."""

from collections.abc import Iterator

from tenv.checks.rules.common import c_compiler, cuda_of, doubt, installed, on_windows, own_compiler, taken_compiler
from tenv.checks.rules.compiler_limits import newest
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.core.versions import Version
from tenv.facts.cuda_host_compiler import GccBreak
from tenv.host.interface import Missing
from tenv.host.report import Compiler

__all__ = ["BREAKS", "breaks_nvcc"]

BREAKS = "TE405"

_OF_DISTRIBUTION = "/usr/bin/"


def breaks_nvcc(case: Case) -> Iterator[Finding]:
    """Yield an error if nvcc is known to fail with its GCC; a warning if some builds of that GCC are fixed."""
    compiler, cuda = taken_compiler(case, cuda=True), cuda_of(case)
    if compiler is None or compiler.kind != "g++" or cuda is None or on_windows(case):
        return
    broken = _broken(case, cuda, compiler)
    if broken is None:
        return
    fails = "fails in" if broken.certain else "fails, unless patched, in"
    yield Finding(
        code=BREAKS,
        severity=Severity.ERROR if broken.certain else Severity.WARNING,
        subject=f"g++ {compiler.version}",
        message=f"passes the check of nvcc {cuda.major_minor}, which {fails} {broken.what}{doubt(broken.basis)}",
        evidence=f"{compiler.path} ({compiler.ways})",
        source=broken.basis.source,
        fix=_fix(case, cuda, broken),
    )


def _broken(case: Case, cuda: Version, compiler: Compiler) -> GccBreak | None:
    libc = case.host.libc
    own = compiler.path.startswith(_OF_DISTRIBUTION) and not isinstance(libc, Missing)
    glibc = libc.value if own and not isinstance(libc, Missing) else None
    return case.facts.cuda_host_compiler.broken_by(cuda, compiler.version, glibc)


def _fix(case: Case, cuda: Version, broken: GccBreak) -> str:
    if own_compiler(case):
        return f'set gxx_{case.platform} = "<{broken.since}" in [dependencies] and lock again'
    bound = newest(case, "g++")
    fits = [
        found
        for found in installed(case)
        if _broken(case, cuda, found) is None and (bound is None or found.version.major <= bound.value)
    ]
    if fits:
        path = max(fits, key=lambda found: found.version).path
        return f"export CUDAHOSTCXX={path} NVCC_CCBIN={path} CXX={path} CC={c_compiler(path)}"
    major = broken.since.major - 1
    path = f"/usr/bin/g++-{major}"
    return (
        f"install GCC {major} (Debian, Ubuntu: `apt install g++-{major}`), then export CUDAHOSTCXX={path} "
        f"NVCC_CCBIN={path}; or use a newer CUDA"
    )
