"""Whether the C++ compiler that a build takes suits the toolkit and PyTorch.

nvcc's own upper limits are those of its ``crt/host_config.h`` (`tenv.checks.rules.compiler_limits`); the lower limits
of the installation guide are not checked by nvcc, those of PyTorch are (``c10/util/C++17.h`` and its CMakeLists.txt).
A target that brings a compiler of its own is not judged by the host's.
"""

from collections.abc import Iterator

from tenv.checks.pytorch_source import SourceRequirement
from tenv.checks.rules.common import (
    asked_doubt,
    c_compiler,
    cuda_of,
    doubt,
    installed,
    on_windows,
    own_compiler,
    taken_compiler,
)
from tenv.checks.rules.compiler_limits import msvc_bounds, newest, row_of
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.core.versions import Version
from tenv.facts.cuda_host_compiler import HostCompilers
from tenv.host.interface import Missing, OriginKind
from tenv.host.report import Compiler

__all__ = ["NONE", "SEVERAL", "TOO_NEW", "TOO_OLD", "msvc", "no_compiler", "several", "too_new", "too_old"]

NONE = "TE401"
TOO_NEW = "TE402"
TOO_OLD = "TE403"
SEVERAL = "TE404"

_MAKERS = {"g++": "GCC", "clang++": "clang"}
_MSVC_KNOWS = {17: 1911, 20: 1929}
"""The first ``_MSC_VER`` whose cl.exe takes ``/std:c++NN`` (Microsoft's page on /std)."""
_MSVC_SUPPORTED = 1920
_TOOLSET = (
    "install a toolset of {} with the Visual Studio Installer (Individual components, MSVC), and build in its "
    "developer prompt: `vcvarsall x64 -vcvars_ver=14.NN`"
)
_WITHOUT_PACKAGES = Version("2.28")
"""The glibc of Ubuntu 18.04 (2.27), Debian 10 and RHEL 8, whose own g++ goes up to 8."""

_WITHOUT_OLD = Version("2.35")
_DROPPED = 10
"""The glibc of Ubuntu 22.04 (Debian 12 has 2.36), and the newest GCC that Debian 12 no longer has."""


def no_compiler(case: Case) -> Iterator[Finding]:
    """Yield an error where no C++ compiler is there."""
    compilers = case.host.compilers
    if own_compiler(case) or isinstance(compilers, Missing):
        return
    if on_windows(case):
        if compilers.kind is OriginKind.SEARCH_MSVC and not installed(case, "msvc"):
            yield _no_visual_cpp(compilers.origin)
    elif not any(compiler.kind in ("g++", "clang++") for compiler in compilers.value):
        yield Finding(
            code=NONE,
            severity=Severity.ERROR,
            subject="C++ compiler",
            message="there is no g++ here (and no clang++), without which neither PyTorch nor its CUDA files compile",
            evidence=f"looked in: {compilers.origin}",
            source="nvcc calls a host compiler for each file (CUDA Compiler Driver NVCC, section 2.1)",
            fix="apt install g++",
        )


def _no_visual_cpp(looked: str) -> Finding:
    return Finding(
        code=NONE,
        severity=Severity.ERROR,
        subject="C++ compiler",
        message="there is no Visual C++ here, without which neither PyTorch nor its CUDA files compile on Windows",
        evidence=f"looked in: {looked}",
        source="nvcc calls cl.exe for each file on Windows (CUDA Compiler Driver NVCC, section 2.1)",
        fix="winget install Microsoft.VisualStudio.2022.BuildTools, with the workload for C++",
    )


def too_new(case: Case) -> Iterator[Finding]:
    """Yield an error where nvcc refuses the compiler that it would call, since that is newer than what it knows."""
    compiler = taken_compiler(case, cuda=True)
    if compiler is None or compiler.kind not in _MAKERS:
        return
    bound = newest(case, compiler.kind)
    cuda = cuda_of(case)
    if cuda is None or bound is None or compiler.version.major <= bound.value:
        return
    yield Finding(
        code=TOO_NEW,
        severity=Severity.ERROR,
        subject=f"{compiler.kind} {compiler.version}",
        message=(
            f"is newer than what nvcc of CUDA {cuda.major_minor} accepts: {_MAKERS[compiler.kind]} {bound.value} at "
            f"most{bound.detail}"
        ),
        evidence=_evidence(compiler),
        source=bound.source,
        fix=_exchange(case, compiler.kind, _least(case, compiler.kind), bound.value, for_nvcc=True),
    )


def too_old(case: Case) -> Iterator[Finding]:
    """Yield an error where PyTorch refuses the compiler, a warning where NVIDIA does not support it."""
    compiler, row = taken_compiler(case), row_of(case)
    if compiler is None or compiler.kind not in _MAKERS:
        return
    maker, bound = _MAKERS[compiler.kind], newest(case, compiler.kind)
    limit = bound.value if bound else None
    asked = _asked(case, compiler.kind)
    if case.source and asked and compiler.version < asked.value:
        who = f"PyTorch {case.source.version.value} asks for: {maker} {asked.value} or newer{asked_doubt(case)}"
        fix = _exchange(case, compiler.kind, asked.value, limit)
        yield _old(compiler, Severity.ERROR, who, asked.origin, fix)
    elif row and compiler.version < (least := _supported(row, compiler.kind)):
        who = f"CUDA {row.major_minor} supports: {maker} {least} or newer{doubt(row.basis)}"
        fix = _exchange(case, compiler.kind, least, limit)
        yield _old(compiler, Severity.WARNING, who, row.basis.source, fix)


def msvc(case: Case) -> Iterator[Finding]:
    """Yield an error where nvcc or PyTorch refuses a Visual C++, too old or too new, a warning where it is old."""
    for_nvcc, for_pytorch = taken_compiler(case, cuda=True), taken_compiler(case)
    if for_nvcc is not None and for_nvcc.kind == "msvc":
        yield from _msvc_for_nvcc(case, for_nvcc)
    if for_pytorch is not None and for_pytorch.kind == "msvc":
        yield from _msvc_for_pytorch(case, for_pytorch)


def _msvc_for_nvcc(case: Case, compiler: Compiler) -> Iterator[Finding]:
    """Yield an error where nvcc refuses a Visual C++, too old or too new: its header refuses both."""
    bounds, cuda = msvc_bounds(case), cuda_of(case)
    if bounds is None or cuda is None:
        return
    lowest, above = bounds
    number = _msc_ver(compiler.version)
    if lowest.value <= number < above.value:
        return
    wanted = f"_MSC_VER {lowest.value} to {above.value - 1}"
    yield Finding(
        code=TOO_NEW if number >= above.value else TOO_OLD,
        severity=Severity.ERROR,
        subject=f"Visual C++ {compiler.version}",
        message=f"is _MSC_VER {number}; nvcc of CUDA {cuda.major_minor} accepts {wanted}{above.detail}",
        evidence=_evidence(compiler),
        source=above.source,
        fix=_TOOLSET.format(wanted),
    )


def _msvc_for_pytorch(case: Case, compiler: Compiler) -> Iterator[Finding]:
    """Yield an error where a Visual C++ does not know PyTorch's C++ standard, a warning below what PyTorch supports."""
    asked = case.source.cxx_standard if case.source else None
    if case.source is None or not isinstance(asked, SourceRequirement) or asked.value not in _MSVC_KNOWS:
        return  # of older standards nothing is known
    number, name, least = _msc_ver(compiler.version), f"PyTorch {case.source.version.value}", _MSVC_KNOWS[asked.value]
    severity, source = Severity.ERROR, f"Microsoft, /std: the first toolset with /std:c++{asked.value}; {asked.origin}"
    message = f"is _MSC_VER {number}, and {name} is written in C++{asked.value}, which needs {least} or newer"
    if number >= least:
        least, severity, source = _MSVC_SUPPORTED, Severity.WARNING, "github.com/pytorch/pytorch/pull/188986"
        message = (
            f"is _MSC_VER {number}; PyTorch supports {least} (Visual Studio 2019) and newer (not confirmed for {name}: "
            "said of its main branch in July 2026)"
        )
    if number < least:
        yield Finding(
            code=TOO_OLD,
            severity=severity,
            subject=f"Visual C++ {compiler.version}",
            message=f"{message}{asked_doubt(case)}",
            evidence=_evidence(compiler),
            source=source,
            fix=_TOOLSET.format(f"_MSC_VER {least} or newer"),
        )


def _msc_ver(version: Version) -> int:
    """Return the ``_MSC_VER`` of a Visual C++: 1941 for 19.41."""
    return version.major * 100 + version.minor if version.major < 100 else version.major  # noqa: PLR2004 (19.x or 1941)


def several(case: Case) -> Iterator[Finding]:
    """Yield a note where several C++ compilers are there, which says the one that is taken."""
    taken, for_cuda = taken_compiler(case), taken_compiler(case, cuda=True)
    if taken is None or own_compiler(case) or isinstance(case.host.compilers, Missing):
        return
    kinds = ("msvc",) if on_windows(case) else tuple(_MAKERS)
    found = [compiler for compiler in case.host.compilers.value if compiler.kind in kinds]
    if len({compiler.path for compiler in found}) > 1:
        nvcc = f", and nvcc {_named(for_cuda)}" if for_cuda and for_cuda != taken else ""
        yield Finding(
            code=SEVERAL,
            severity=Severity.NOTE,
            subject=" and ".join(dict.fromkeys(compiler.kind for compiler in found)),
            message=f"there are several; a build takes {_named(taken)}{nvcc}",
            evidence="; ".join(f"{compiler.path} {compiler.version} ({compiler.ways})" for compiler in found),
            source=(
                "the developer's prompt, else Microsoft.VCToolsVersion.default.txt of the newest Visual Studio"
                if on_windows(case)
                else "CMakeDetermineCXXCompiler.cmake: CXX, else the first of c++, g++, clang++ on PATH"
            ),
            fix=(
                "build in the prompt of another one: `vcvarsall x64 -vcvars_ver=14.NN`"
                if on_windows(case)
                else "set CXX (and CC) to take another one, CUDAHOSTCXX for nvcc alone"
            ),
        )


def _named(compiler: Compiler) -> str:
    return f"{compiler.kind} {compiler.version} ({compiler.path})"


def _evidence(compiler: Compiler) -> str:
    return f"{compiler.path} ({compiler.ways})"


def _old(compiler: Compiler, severity: Severity, who: str, source: str, fix: str) -> Finding:
    return Finding(
        code=TOO_OLD,
        severity=severity,
        subject=f"{compiler.kind} {compiler.version}",
        message=f"is older than what {who}",
        evidence=_evidence(compiler),
        source=source,
        fix=fix,
    )


def _asked(case: Case, kind: str) -> SourceRequirement[Version] | None:
    """Return the oldest compiler of a kind that the PyTorch revision takes, None when it does not say."""
    asked = (case.source.gcc_min if kind == "g++" else case.source.clang_min) if case.source else None
    return asked if isinstance(asked, SourceRequirement) else None


def _supported(row: HostCompilers, kind: str) -> Version:
    return Version(str(row.gcc_min)) if kind == "g++" else row.clang_min


def _least(case: Case, kind: str) -> Version:
    asked, row = _asked(case, kind), row_of(case)
    return asked.value if asked else _supported(row, kind) if row else Version("0")


def _exchange(case: Case, kind: str, least: Version, most: int | None, *, for_nvcc: bool = False) -> str:
    """Return how to take another compiler: an installed one that fits, else one to install.

    Args:
        case: The case.
        kind: `g++` or `clang++`.
        least: The oldest version that will do.
        most: The newest major version that will do, None when none is known to be too new.
        for_nvcc: Whether nvcc alone is to take it; then the newest that will do is the one to install.
    """
    if own_compiler(case):
        package, bound = f"gxx_{case.platform}", f",<{most + 1}" if most is not None else ""
        return f'ask for {package} = ">={least}{bound}" in [dependencies], and lock again'
    variables = "CUDAHOSTCXX={0} NVCC_CCBIN={0}" if for_nvcc else "CXX={0} CC={1}"
    found = installed(case, kind)
    if fits := [c for c in found if c.version >= least and (most is None or c.version.major <= most)]:
        path = max(fits, key=lambda compiler: compiler.version).path
        return f"export {variables.format(path, c_compiler(path))}"
    fresh = most is not None and for_nvcc
    name = f"{kind}-{most if fresh else least.major}"
    wanted = f"{_MAKERS[kind]} {least} {f'to {most}' if most else 'or newer'}"
    apt = f"apt install {name if kind == 'g++' else name.replace('++', '')}"
    elsewhere = _elsewhere(case, most if fresh else None) if kind == "g++" else ""
    package = f"{wanted}, such as {name} (Debian, Ubuntu: `{apt}`{elsewhere})"
    path = f"/usr/bin/{name}"
    return f"install {package}, then export {variables.format(path, c_compiler(path))}"


def _elsewhere(case: Case, most: int | None) -> str:
    """Return where a g++ is on distributions whose own packages have none that new, or none as old as `most`."""
    libc = case.host.libc
    if isinstance(libc, Missing):
        return ""
    if libc.value >= _WITHOUT_OLD and most is not None and most <= _DROPPED:
        return (
            "; Debian 12 and later have none that old, nor has Ubuntu 22.04 one before 9: take a target that brings "
            "its own GCC (those from conda), or build in a container of an older release"
        )
    if libc.value > _WITHOUT_PACKAGES:
        return ""
    return "; where there is none, Ubuntu: ppa:ubuntu-toolchain-r/test, RHEL and its kin: gcc-toolset or devtoolset"
