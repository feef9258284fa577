"""Check the C++ compiler of a build against the toolkit and PyTorch.

nvcc's ``crt/host_config.h`` stops with an ``#error`` outside its bounds. If a toolkit of the target's release is
present, its header is read: the environment's before a system's. Otherwise the table holds the bounds of NVIDIA's
packages. nvcc does not enforce the lower limits of the installation guide; PyTorch enforces its own
(``c10/util/C++17.h`` and its CMakeLists.txt). The host's compilers do not matter for a target that brings its own.
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
from tenv.checks.rules.interface import Case, Finding, Scope, Severity, Unknown
from tenv.checks.rules.pytorch import known_failure
from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.facts.cuda_host_compiler import GccBreak, HostCompilers
from tenv.facts.pytorch_tried import KnownFailure, Part
from tenv.host.interface import Missing, OriginKind
from tenv.host.report import Compiler, CompilerLimits

NONE = "TE401"
TOO_NEW = "TE402"
TOO_OLD = "TE403"
SEVERAL = "TE404"
BREAKS = "TE405"
PYTORCH = "TE406"


@dataclass(frozen=True, slots=True)
class Bound:
    """A version limit of nvcc."""

    value: int
    """The newest major version; of MSVC, a ``_MSC_VER``."""
    detail: str
    """The suffix of a message, with a leading space, or an empty string."""
    source: str
    """The source of the limit."""


def row_of(case: Case) -> HostCompilers | None:
    """Return the table's row for the target's CUDA, None if there is none."""
    cuda = cuda_of(case)
    return case.facts.cuda_host_compiler.limits(cuda) if cuda else None


def header_of(case: Case) -> CompilerLimits | None:
    """Return the bounds in the header of a present toolkit with the target's release; None if there is none."""
    cuda = cuda_of(case)
    if cuda is None or isinstance(case.host.toolkits, Missing):
        return None
    same = (row for row in case.host.toolkits.value if row.version and row.version.major_minor == cuda.major_minor)
    return next((row.compilers for row in same if row.compilers), None)


def newest(case: Case, kind: str) -> Bound | None:
    """Return the newest major version of GCC (`g++`) or clang (`clang++`) that nvcc accepts; None if unknown."""
    header, row = header_of(case), row_of(case)
    newest_major = (header.gcc_max if kind == "g++" else header.clang_max) if header else None
    if header and newest_major is not None:
        return Bound(newest_major, "", header.file)
    if row is None:
        return None
    if kind != "g++":
        return Bound(row.clang_max.major, doubt(row.basis), row.basis.source)
    detail = f" ({row.gcc_max_detail.rstrip('.')})" if row.gcc_max_detail else ""
    return Bound(row.gcc_max, f"{detail}{doubt(row.basis)}", row.basis.source)


def msvc_bounds(case: Case) -> tuple[Bound, Bound] | None:
    """Return the lowest ``_MSC_VER`` that nvcc accepts and the lowest that is too new; None if unknown."""
    header, row = header_of(case), row_of(case)
    if header and header.msvc_min is not None and header.msvc_below is not None:
        return Bound(header.msvc_min, "", header.file), Bound(header.msvc_below, "", header.file)
    if row is None:
        return None
    detail, source = doubt(row.basis), row.basis.source
    return Bound(row.msvc_min, detail, source), Bound(row.msvc_below, detail, source)


_MAKERS = {"g++": "GCC", "clang++": "clang"}
_MSVC_KNOWS = {17: 1911, 20: 1929}
"""The first ``_MSC_VER`` whose cl.exe takes ``/std:c++NN`` (Microsoft's page on /std)."""
_MSVC_SUPPORTED = 1920
_TOOLSET = (
    "install a toolset with {} with the Visual Studio Installer (Individual components, MSVC), and build in its "
    "developer prompt: `vcvarsall x64 -vcvars_ver=14.NN`"
)
_WITHOUT_PACKAGES = Version("2.28")
"""The glibc of Ubuntu 18.04 (2.27), Debian 10 and RHEL 8, whose own g++ goes up to 8."""

_WITHOUT_OLD = Version("2.35")
_DROPPED = 10
"""The glibc of Ubuntu 22.04 (Debian 12 has 2.36), and the newest GCC that Debian 12 no longer has."""


def no_compiler(case: Case) -> Iterator[Finding]:
    """Yield an error if there is no C++ compiler."""
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
            message="neither g++ nor clang++ was found; PyTorch and its CUDA files need one to compile",
            evidence=f"searched: {compilers.origin}",
            source="nvcc calls a host compiler for each file (CUDA Compiler Driver NVCC, section 2.1)",
            fix="apt install g++",
        )


def _no_visual_cpp(looked: str) -> Finding:
    return Finding(
        code=NONE,
        severity=Severity.ERROR,
        subject="C++ compiler",
        message="Visual C++ was not found; PyTorch and its CUDA files need it to compile on Windows",
        evidence=f"searched: {looked}",
        source="nvcc calls cl.exe for each file on Windows (CUDA Compiler Driver NVCC, section 2.1)",
        fix="winget install Microsoft.VisualStudio.2022.BuildTools, with the workload for C++",
    )


def too_new(case: Case) -> Iterator[Finding]:
    """Yield an error if nvcc rejects its host compiler as too new."""
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
    """Yield an error if PyTorch rejects the compiler as too old, a warning if NVIDIA does not support it.

    nvcc's host compiler may differ from CXX. Its version is not compared by PyTorch's CMake, but its major version
    is by the headers (``c10/util/C++17.h``), which the CUDA files include.
    """
    taken = taken_compiler(case)
    if taken is not None and taken.kind in _MAKERS:
        yield from _too_old(case, taken, for_nvcc=False)
    of_nvcc = taken_compiler(case, cuda=True) if cuda_of(case) else None
    if of_nvcc is not None and of_nvcc != taken and of_nvcc.kind in _MAKERS:
        yield from _too_old(case, of_nvcc, for_nvcc=True)


def _too_old(case: Case, compiler: Compiler, *, for_nvcc: bool) -> Iterator[Finding]:
    maker, bound, row = _MAKERS[compiler.kind], newest(case, compiler.kind), row_of(case)
    limit = bound.value if bound else None
    asked = _asked(case, compiler.kind)
    asks = Version(str(asked.value.major)) if asked and for_nvcc else asked.value if asked else None
    if case.source and asked and asks and compiler.version < asks:
        who = f"PyTorch {case.source.version.value} requires{' of nvcc' * for_nvcc}: {maker} {asks} or newer"
        fix = _exchange(case, compiler.kind, asks, limit, for_nvcc=for_nvcc)
        yield _old(compiler, Severity.ERROR, f"{who}{asked_doubt(case)}", asked.origin, fix)
    elif row and compiler.version < (least := _supported(row, compiler.kind)):
        who = f"CUDA {row.major_minor} supports: {maker} {least} or newer{doubt(row.basis)}"
        fix = _exchange(case, compiler.kind, least, limit, for_nvcc=for_nvcc)
        yield _old(compiler, Severity.WARNING, who, row.basis.source, fix)


def msvc(case: Case) -> Iterator[Finding]:
    """Yield an error if nvcc or PyTorch rejects a Visual C++, a warning if it is unsupported."""
    for_nvcc, for_pytorch = taken_compiler(case, cuda=True), taken_compiler(case)
    if for_nvcc is not None and for_nvcc.kind == "msvc":
        yield from _msvc_for_nvcc(case, for_nvcc)
    if for_pytorch is not None and for_pytorch.kind == "msvc":
        yield from _msvc_for_pytorch(case, for_pytorch)


def _msvc_for_nvcc(case: Case, compiler: Compiler) -> Iterator[Finding]:
    """Yield an error if nvcc's header rejects a Visual C++ as too old or too new."""
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
    """Yield an error if a Visual C++ lacks PyTorch's C++ standard, a warning if it is older than PyTorch supports."""
    asked = case.source.cxx_standard if case.source else None
    if case.source is None or not isinstance(asked, SourceRequirement) or asked.value not in _MSVC_KNOWS:
        return  # no data about older standards
    number, name, least = _msc_ver(compiler.version), f"PyTorch {case.source.version.value}", _MSVC_KNOWS[asked.value]
    severity, source = Severity.ERROR, f"Microsoft, /std: the first toolset with /std:c++{asked.value}; {asked.origin}"
    message = f"is _MSC_VER {number}, and {name} is written in C++{asked.value}, which needs {least} or newer"
    if number >= least:
        least, severity, source = _MSVC_SUPPORTED, Severity.WARNING, "github.com/pytorch/pytorch/pull/188986"
        message = (
            f"is _MSC_VER {number}; PyTorch supports {least} (Visual Studio 2019) and newer (not confirmed for {name}: "
            "stated for its main branch in July 2026)"
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
    """Yield a note with the compiler that a build uses if there are several C++ compilers."""
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
            message=f"several are installed; a build uses {_named(taken)}{nvcc}",
            evidence="; ".join(f"{compiler.path} {compiler.version} ({compiler.ways})" for compiler in found),
            source=(
                "the developer's prompt, else Microsoft.VCToolsVersion.default.txt of the newest Visual Studio"
                if on_windows(case)
                else "CMakeDetermineCXXCompiler.cmake: CXX, else the first of c++, g++, clang++ on PATH"
            ),
            fix=(
                "build in the prompt of another toolset: `vcvarsall x64 -vcvars_ver=14.NN`"
                if on_windows(case)
                else "set CXX and CC to use another one, CUDAHOSTCXX for nvcc only"
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
        message=f"is older than {who}",
        evidence=_evidence(compiler),
        source=source,
        fix=fix,
    )


def _asked(case: Case, kind: str) -> SourceRequirement[Version] | None:
    """Return the oldest compiler of a kind that the PyTorch revision accepts; None if unknown."""
    asked = (case.source.gcc_min if kind == "g++" else case.source.clang_min) if case.source else None
    return asked if isinstance(asked, SourceRequirement) else None


def _supported(row: HostCompilers, kind: str) -> Version:
    return Version(str(row.gcc_min)) if kind == "g++" else row.clang_min


def _least(case: Case, kind: str) -> Version:
    asked, row = _asked(case, kind), row_of(case)
    return asked.value if asked else _supported(row, kind) if row else Version("0")


def _exchange(case: Case, kind: str, least: Version, most: int | None, *, for_nvcc: bool = False) -> str:
    """Return the command that selects another compiler: an installed one that fits, else one to install.

    Args:
        case: The case.
        kind: `g++` or `clang++`.
        least: The oldest version that fits.
        most: The newest major version that fits; None if there is no known limit.
        for_nvcc: Whether only nvcc uses it; then the newest version that fits is the one to install.
    """
    if own_compiler(case):
        package, bound = f"gxx_{case.platform}", f",<{most + 1}" if most is not None else ""
        return f'set {package} = ">={least}{bound}" in [dependencies] and lock again'
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
    """Return where to get a g++ on distributions whose packages are too old, or newer than `most`."""
    libc = case.host.libc
    if isinstance(libc, Missing):
        return ""
    if libc.value >= _WITHOUT_OLD and most is not None and most <= _DROPPED:
        return (
            "; Debian 12 and later have no GCC that old, and Ubuntu 22.04 none before 9: use a conda target, "
            "which brings its own GCC, or build in a container with an older release"
        )
    if libc.value > _WITHOUT_PACKAGES:
        return ""
    return "; if the package is missing: ppa:ubuntu-toolchain-r/test on Ubuntu, gcc-toolset or devtoolset on RHEL"


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
    says = "may fail with" if row.untried else f"{'fails' if sure else 'failed on some days'} with"
    yield Finding(
        code=PYTORCH,
        severity=Severity.ERROR if sure else Severity.WARNING,
        subject=f"g++ {compiler.version}",
        message=f"{says} PyTorch {torch}: {row.what}{doubt(row.basis)}",
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
