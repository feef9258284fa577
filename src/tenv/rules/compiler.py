"""Whether the C++ compiler that a build takes suits the toolkit and PyTorch.

nvcc's own upper limits are those of its ``crt/host_config.h``, which ends with an ``#error``; the lower limits of the
installation guide are not checked by nvcc, those of PyTorch are (``c10/util/C++17.h`` and its CMakeLists.txt). A target
that brings a compiler of its own is not judged by the host's.
"""

from collections.abc import Iterator

from tenv.facts.cuda_host_compiler import HostCompilers
from tenv.host.interface import Missing
from tenv.host.report import Compiler
from tenv.rules.common import (
    asked_doubt,
    c_compiler,
    cuda_of,
    doubt,
    installed,
    on_windows,
    own_compiler,
    taken_compiler,
)
from tenv.rules.interface import Case, Finding, Severity
from tenv.source import Asked
from tenv.versions import Version

__all__ = ["NONE", "SEVERAL", "TOO_NEW", "TOO_OLD", "no_compiler", "several", "too_new", "too_old"]

NONE = "TE401"
TOO_NEW = "TE402"
TOO_OLD = "TE403"
SEVERAL = "TE404"

_WITHOUT_PACKAGES = Version("2.28")
"""The glibc of Ubuntu 18.04 (2.27), Debian 10 and RHEL 8, whose own g++ goes up to 8."""


def no_compiler(case: Case) -> Iterator[Finding]:
    """Yield an error where no C++ compiler is there."""
    compilers = case.host.compilers
    if on_windows(case) or own_compiler(case) or isinstance(compilers, Missing):
        return
    if not any(compiler.kind in ("g++", "clang++") for compiler in compilers.value):
        yield Finding(
            code=NONE,
            severity=Severity.ERROR,
            subject="C++ compiler",
            message="there is no g++ here (and no clang++), without which neither PyTorch nor its CUDA files compile",
            evidence=f"looked in: {compilers.origin}",
            source="nvcc calls a host compiler for each file (CUDA Compiler Driver NVCC, section 2.1)",
            fix="apt install g++",
        )


def too_new(case: Case) -> Iterator[Finding]:
    """Yield an error where nvcc refuses the g++ that it would call."""
    compiler, limits = taken_compiler(case, cuda=True), _limits(case)
    if compiler is None or limits is None or compiler.kind != "g++" or compiler.version.major <= limits.gcc_max:
        return
    detail = f" ({limits.gcc_max_detail.rstrip('.')})" if limits.gcc_max_detail else ""
    yield Finding(
        code=TOO_NEW,
        severity=Severity.ERROR,
        subject=f"g++ {compiler.version}",
        message=(
            f"is newer than what nvcc of CUDA {limits.major_minor} accepts: GCC {limits.gcc_max} at most{detail}"
            f"{doubt(limits.basis)}"
        ),
        evidence=_evidence(compiler),
        source=limits.basis.source,
        fix=_exchange(case, _least(case, limits), limits.gcc_max, "CUDAHOSTCXX={0} NVCC_CCBIN={0}"),
    )


def too_old(case: Case) -> Iterator[Finding]:
    """Yield an error where PyTorch refuses the g++, a warning where NVIDIA does not support it."""
    compiler, limits = taken_compiler(case), _limits(case)
    if compiler is None or compiler.kind != "g++":
        return
    asked = case.source.gcc_min if case.source else None
    if case.source and isinstance(asked, Asked) and compiler.version < asked.value:
        who = f"PyTorch {case.source.version.value} asks for: GCC {asked.value} or newer{asked_doubt(case)}"
        fix = _exchange(case, asked.value, limits.gcc_max if limits else None, "CXX={0} CC={1}")
        yield _old(compiler, Severity.ERROR, who, asked.origin, fix)
    elif limits and compiler.version.major < limits.gcc_min:
        who = f"CUDA {limits.major_minor} supports: GCC {limits.gcc_min} or newer{doubt(limits.basis)}"
        fix = _exchange(case, Version(str(limits.gcc_min)), limits.gcc_max, "CXX={0} CC={1}")
        yield _old(compiler, Severity.WARNING, who, limits.basis.source, fix)


def several(case: Case) -> Iterator[Finding]:
    """Yield a note where several g++ are there, which says the one that is taken."""
    taken = taken_compiler(case)
    if taken is None or isinstance(case.host.compilers, Missing):
        return
    found = [compiler for compiler in case.host.compilers.value if compiler.kind == "g++"]
    if len({compiler.path for compiler in found}) > 1:
        yield Finding(
            code=SEVERAL,
            severity=Severity.NOTE,
            subject="g++",
            message=f"there are several; a build takes {taken.kind} {taken.version} ({taken.path})",
            evidence="; ".join(f"{compiler.path} {compiler.version} ({compiler.found_by})" for compiler in found),
            source="CMakeDetermineCXXCompiler.cmake: CXX, else the first of c++, g++, clang++ on PATH",
            fix="set CXX (and CC) to take another one, CUDAHOSTCXX for nvcc alone",
        )


def _limits(case: Case) -> HostCompilers | None:
    cuda = cuda_of(case)
    return case.facts.cuda_host_compiler.limits(cuda) if cuda and not on_windows(case) else None


def _evidence(compiler: Compiler) -> str:
    return f"{compiler.path} ({compiler.found_by})"


def _old(compiler: Compiler, severity: Severity, who: str, source: str, fix: str) -> Finding:
    return Finding(
        code=TOO_OLD,
        severity=severity,
        subject=f"g++ {compiler.version}",
        message=f"is older than what {who}",
        evidence=_evidence(compiler),
        source=source,
        fix=fix,
    )


def _least(case: Case, limits: HostCompilers) -> Version:
    asked = case.source.gcc_min if case.source else None
    return asked.value if isinstance(asked, Asked) else Version(str(limits.gcc_min))


def _exchange(case: Case, least: Version, newest: int | None, variables: str) -> str:
    """Return how to take another g++: an installed one that fits, else one to install.

    Args:
        case: The case.
        least: The oldest GCC that will do.
        newest: The newest major version that will do, None when none is known to be too new.
        variables: What to export, with `{0}` for the g++ and `{1}` for its gcc.
    """
    if fits := [c for c in installed(case) if c.version >= least and c.version.major <= (newest or c.version.major)]:
        path = max(fits, key=lambda compiler: compiler.version).path
        return f"export {variables.format(path, c_compiler(path))}"
    fresh = newest is not None and variables.startswith("CUDAHOSTCXX")
    name = f"g++-{newest if fresh else least.major}"
    wanted = f"GCC {least} {f'to {newest}' if newest else 'or newer'}"
    package = f"{wanted}, such as {name} (Debian, Ubuntu: `apt install {name}`{_elsewhere(case)})"
    path = f"/usr/bin/{name}"
    return f"install {package}, then export {variables.format(path, c_compiler(path))}"


def _elsewhere(case: Case) -> str:
    """Return where a newer g++ is on distributions whose own packages have none."""
    libc = case.host.libc
    if isinstance(libc, Missing) or libc.value > _WITHOUT_PACKAGES:
        return ""
    return "; where there is none, Ubuntu: ppa:ubuntu-toolchain-r/test, RHEL and its kin: gcc-toolset or devtoolset"
