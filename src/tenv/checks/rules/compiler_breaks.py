"""Check for a GCC that passes nvcc's ``crt/host_config.h`` but fails later, or that PyTorch does not compile with."""

from collections.abc import Iterator

from tenv.checks.rules.common import c_compiler, cuda_of, doubt, installed, on_windows, own_compiler, taken_compiler
from tenv.checks.rules.compiler_limits import newest
from tenv.checks.rules.interface import Case, Finding, Scope, Severity, Unknown
from tenv.checks.rules.tried import known_failure
from tenv.core.versions import Version
from tenv.facts.cuda_host_compiler import GccBreak
from tenv.facts.pytorch_tried import KnownFailure, Part
from tenv.host.interface import Missing
from tenv.host.report import Compiler

__all__ = ["BREAKS", "PYTORCH", "breaks_nvcc", "breaks_pytorch"]

BREAKS = "TE405"
PYTORCH = "TE406"

_OF_DISTRIBUTION = "/usr/bin/"


def breaks_nvcc(case: Case) -> Iterator[Finding]:
    """Yield an error if nvcc is known to fail with its GCC; a warning if some builds of that GCC are fixed."""
    compiler, cuda = taken_compiler(case, cuda=True), cuda_of(case)
    if compiler is None or compiler.kind != "g++" or cuda is None or on_windows(case):
        return
    broken = _broken(case, cuda, compiler)
    if broken is None:
        return
    surely = broken.surely(_glibc_of(case, compiler))
    fails = "fails in" if surely else "fails, unless patched, in"
    yield Finding(
        code=BREAKS,
        severity=Severity.ERROR if surely else Severity.WARNING,
        subject=f"g++ {compiler.version}",
        message=f"passes the check of nvcc {cuda.major_minor}, which {fails} {broken.what}{doubt(broken.basis)}",
        evidence=f"{compiler.path} ({compiler.ways})",
        source=broken.basis.source,
        fix=_fix(case, cuda, broken),
    )


def breaks_pytorch(case: Case) -> Iterator[Finding]:
    """Yield an error if the revision is known not to compile with the build's GCC, a warning if its day decides."""
    compiler, source = taken_compiler(case), case.source
    if compiler is None or compiler.kind != "g++" or source is None or on_windows(case):
        return
    found = known_failure(case, Part.GCC, compiler.version)
    if found is None:
        return
    row, sure = found
    torch = source.version.value
    yield Finding(
        code=PYTORCH,
        severity=Severity.ERROR if sure else Severity.WARNING,
        subject=f"g++ {compiler.version}",
        message=f"{'fails' if sure else 'failed on some days'} with PyTorch {torch}: {row.what}{doubt(row.basis)}",
        evidence=f"{compiler.path} ({compiler.ways}); {torch} ({source.version.origin})",
        source=row.basis.source,
        fix=_older(case, row),
        unknown=None if sure else Unknown(Scope.BUILD, "pytorch_tried"),
    )


def _older(case: Case, row: KnownFailure) -> str:
    """Return the command that selects a GCC before those that fail: one that is installed, else one to install."""
    if own_compiler(case):
        return f'set gxx_{case.platform} = "<{row.first}" in [dependencies] and lock again'
    fits = [found for found in installed(case) if not row.has(found.version)]
    if fits:
        path = max(fits, key=lambda found: found.version).path
        return f"export CXX={path} CC={c_compiler(path)}"
    major = row.first.major - 1 if row.first else 0
    return (
        f"install GCC {major} (Debian, Ubuntu: `apt install g++-{major}`), then export CXX=/usr/bin/g++-{major} "
        f"CC=/usr/bin/gcc-{major}"
    )


def _broken(case: Case, cuda: Version, compiler: Compiler) -> GccBreak | None:
    return case.facts.cuda_host_compiler.broken_by(cuda, compiler.version, _glibc_of(case, compiler))


def _glibc_of(case: Case, compiler: Compiler) -> Version | None:
    """Return the glibc of the distribution that a GCC is from; None for a GCC from elsewhere."""
    libc = case.host.libc
    if isinstance(libc, Missing) or not compiler.path.startswith(_OF_DISTRIBUTION):
        return None
    return libc.value


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
