"""Check the C and C++ libraries of the host against the target.

The headers of older toolkits declare functions that newer glibc headers declare differently. A program that was
compiled with a newer GCC than the loader's libstdc++ fails at startup with ``GLIBCXX_3.4.x not found``.

A compiler and its sysroot, the headers of the C library, must have the same origin: conda-forge's gcc with the system's
headers builds programs that need the system's glibc. A system gcc with conda-forge's headers searches for startup files
that do not exist.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial

from tenv.checks.pytorch_source import SourceRequirement
from tenv.checks.rules.common import c_compiler, cuda_of, doubt, installed, on_windows, own_compiler, taken_compiler
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.core.wheel_platforms import glibc_of
from tenv.facts.interface import Basis
from tenv.host.interface import Missing, ReasonKind
from tenv.host.report import Compiler, Lead

HEADERS = "TE501"
TOO_OLD = "TE502"
LIBSTDCXX = "TE503"
ORIGINS = "TE504"

_PACKAGES = ("libstdcxx", "libstdcxx-ng")
"""The conda packages that hold a libstdc++; they have the version of its GCC."""
_CONDA = re.compile(r"/(envs|[^/]*(conda|mamba|miniforge)[^/]*)/")
"""The part that paths of libraries in conda environments have."""
_OF_DISTRIBUTION = "/usr/bin/"
_SYSTEM_LIBRARIES = ("/usr/lib", "/lib")
_STATIC_RUNTIME = ("/opt/rh/",)
"""Red Hat's toolsets link the parts that the system's libstdc++ lacks statically."""


def glibc_headers(case: Case) -> Iterator[Finding]:
    """Yield an error if the toolkit's headers do not compile with the C library's headers."""
    libc, cuda = case.host.libc, cuda_of(case)
    if cuda is None or on_windows(case) or own_compiler(case) or isinstance(libc, Missing):
        return
    compiler = taken_compiler(case, cuda=True)
    gcc = compiler.version if compiler and compiler.kind == "g++" else None
    table = case.facts.cuda_host_compiler
    conflict = table.glibc_conflict(cuda, libc.value, case.platform, gcc)
    if conflict is None:
        return
    declared = [name for name in conflict.declared(libc.value) if not _is_patched(case, cuda, name)]
    if not declared and not conflict.types:
        return
    what = (
        f"from {conflict.glibc} on, both declare {', '.join(declared)}"
        if declared
        else f"from {conflict.glibc} on, it has types that nvcc {cuda} does not support: {', '.join(conflict.types)}"
    )
    yield Finding(
        code=HEADERS,
        severity=Severity.ERROR,
        subject=f"glibc {libc.value}",
        message=(f"does not compile with the headers of CUDA {cuda}: {what}{doubt(conflict.basis)}"),
        evidence=f"glibc {libc.value} ({libc.origin})",
        source=conflict.basis.source,
        fix=(
            f"choose a target with a CUDA newer than {table.newest_conflict(libc.value, case.platform)}, or build "
            f"in a container with glibc older than {conflict.glibc}"
        ),
    )


def _is_patched(case: Case, cuda: Version, function: str) -> bool:
    """Return whether the selected toolkit's headers declare a function as glibc does."""
    if isinstance(case.host.toolkits, Missing):
        return False
    same = (row for row in case.host.toolkits.value if row.version and row.version.major_minor == cuda.major_minor)
    toolkit = next((row for row in same if row.compiles), None)
    stem = function.removesuffix("f")
    return toolkit is not None and any(stem in name for name in toolkit.patched)


def glibc_too_old(case: Case) -> Iterator[Finding]:
    """Yield an error if the C library is older than the target requires: its manifest, else the wheels in its lock."""
    libc, named = case.host.libc, case.manifest.requirements.glibc
    wanted = named or _of_wheels(case)
    if wanted is None or on_windows(case):
        return
    if isinstance(libc, Missing):
        subject, evidence, too_old = "the C library", libc.reason, libc.kind is ReasonKind.NOT_GLIBC
    else:
        subject, evidence = f"glibc {libc.value}", f"glibc {libc.value} ({libc.origin})"
        too_old = libc.value < wanted
    if too_old:
        yield Finding(
            code=TOO_OLD,
            severity=Severity.ERROR,
            subject=subject,
            message=f"the target's packages need glibc {wanted} or newer: they neither install nor start here",
            evidence=evidence,
            source=f"requirements.glibc of {case.manifest.file}" if named else "the tags of the wheels in the lock",
            fix=f"use a distribution, or a container, with glibc {wanted} or newer",
        )


def _of_wheels(case: Case) -> Version | None:
    """Return the oldest glibc on which all locked wheels install; None if no file name has one."""
    rows = case.lock.wheels.get(case.platform, ()) if case.lock is not None else ()
    return max((found for row in rows if not row.features and (found := glibc_of(row.file))), default=None)


def libstdcxx_too_old(case: Case) -> Iterator[Finding]:
    """Yield an error if the loaded libstdc++ is older than the selected compiler's.

    The loaded one is the environment's if its lock has one (a Python from conda finds it first), else the loader's.
    """
    compiler = taken_compiler(case)
    if compiler is None or compiler.kind != "g++" or compiler.path.startswith(_STATIC_RUNTIME):
        return
    loaded = _of_environment(case)
    if loaded is None and not own_compiler(case):
        loaded = _of_host(case)
    needs = _linked(case, compiler, loaded) if loaded else None
    if needs is None or loaded is None or needs.glibcxx <= loaded.glibcxx:
        return
    yield Finding(
        code=LIBSTDCXX,
        severity=Severity.ERROR,
        subject=f"libstdc++ of {loaded.name}",
        message=(
            f"is older than {needs.whose}: programs that it compiles may fail at startup with `version "
            f"'GLIBCXX_{needs.glibcxx}' not found`; this library has GLIBCXX_{loaded.glibcxx}"
            f"{doubt(needs.basis, loaded.basis)}"
        ),
        evidence=f"{loaded.evidence}; {compiler.path} ({compiler.ways})",
        source=needs.source,
        fix=f"{loaded.newer(compiler)}, or {_older(case, loaded)}",
    )


@dataclass(frozen=True, slots=True)
class _Linked:
    """The libstdc++ that a g++ links: its highest GLIBCXX, its name in messages, and the source."""

    glibcxx: Version
    whose: str
    source: str
    basis: Basis | None = None


def _linked(case: Case, compiler: Compiler, loaded: "_Loaded") -> _Linked | None:
    """Return the libstdc++ that a g++ links: as the g++ reports it, else the distribution's, else by GCC version.

    Every g++ of a distribution links the distribution's library. If programs load that library, it can't be older.
    """
    if compiler.glibcxx is not None:
        whose = f"the libstdc++ that g++ {compiler.version} links"
        return _Linked(compiler.glibcxx, whose, f"{compiler.path} -print-file-name=libstdc++.so")
    own = case.facts.libstdcxx.for_gcc(compiler.version)
    libc = case.host.libc
    of_distribution = compiler.path.startswith(_OF_DISTRIBUTION) and not own_compiler(case)
    if of_distribution and not loaded.name.startswith(_SYSTEM_LIBRARIES) and not isinstance(libc, Missing):
        shared = case.facts.libstdcxx.for_distribution(libc.value)
        if shared and (own is None or shared.glibcxx > own.glibcxx):
            whose = f"the libstdc++ of {shared.name}, which its g++ {compiler.version} links"
            return _Linked(shared.glibcxx, whose, shared.basis.source, shared.basis)
    return _Linked(own.glibcxx, f"g++ {compiler.version}", own.basis.source, own.basis) if own else None


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The libstdc++ that programs load: its name, its highest GLIBCXX, the source, and how to get a newer one."""

    name: str
    glibcxx: Version
    evidence: str
    newer: Callable[[Compiler], str]
    basis: Basis | None = None


def _of_host(case: Case) -> _Loaded | None:
    library = case.host.libstdcxx
    if isinstance(library, Missing):
        return None
    path = library.value.path

    def newer(compiler: Compiler) -> str:
        if _CONDA.search(path):
            return f'conda install -c conda-forge "libstdcxx-ng>={compiler.version.major}" in that environment'
        own = f'"$(dirname "$({compiler.path} -print-file-name=libstdc++.so.6)")"'
        return f"export LD_LIBRARY_PATH={own}:$LD_LIBRARY_PATH"

    return _Loaded(path, library.value.glibcxx, f"{path} ({library.origin})", newer)


def _of_environment(case: Case) -> _Loaded | None:
    packages = case.lock.conda.get(case.platform, ()) if case.lock else ()
    for package in packages:
        version = Version.find(package.version) if package.name in _PACKAGES else None
        if version and (symbols := case.facts.libstdcxx.for_gcc(version)):
            return _Loaded(
                name=f"the environment ({package.name} {version})",
                glibcxx=symbols.glibcxx,
                evidence=f"{package.file} in the lock of `{case.manifest.name}`",
                newer=partial(_newer_package, package.name),
                basis=symbols.basis,
            )
    return None


def _newer_package(name: str, compiler: Compiler) -> str:
    return f'set {name} = ">={compiler.version.major}" in [dependencies] and lock again'


def _older(case: Case, loaded: _Loaded) -> str:
    """Return how to select an older g++: the newest installed one whose symbols the library has, if there is one."""
    asked = case.source.gcc_min if case.source else None
    fits = [
        compiler
        for compiler in installed(case)
        if (needs := _linked(case, compiler, loaded)) and needs.glibcxx <= loaded.glibcxx
        if not isinstance(asked, SourceRequirement) or compiler.version >= asked.value
    ]
    if not fits:
        return "use an older g++ (CXX, CC)"
    path = max(fits, key=lambda compiler: compiler.version).path
    return f"use an older g++: export CXX={path} CC={c_compiler(path)}"


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
