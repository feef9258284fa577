"""Check that the target supports the host's platform, and that the host has the tools that the target takes from it.

These are the CUDA toolkit, ROCm, the compiler and the debug build of Python of ``[system]``, and a Python with its
headers.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from tenv.checks.rules.common import chosen_gcc, chosen_rocm, chosen_toolkit, gcc_limit
from tenv.checks.rules.interface import Case, Finding, Scope, Severity, Unknown
from tenv.core.versions import Range, Version
from tenv.host.interface import Fact, Missing, ReasonKind
from tenv.host.report import FoundPython
from tenv.targets.manifest import DEBUG_PYTHON
from tenv.targets.order import takes_toolkit
from tenv.targets.search import sister_hint

LACKING = "TE309"
PLATFORM = "TE705"
NO_HEADERS = "TE613"
NO_PYTHON = "TE615"

INSTALL_DEBUG = "apt install python3-dbg (Debian, Ubuntu) or dnf install python3-debug (Fedora)"
"""The packages of distributions that have a debug build of Python with its headers."""

_ANY_PATCH = 99
_VARIABLES = {"cuda-toolkit": "CUDA_HOME", "rocm": "ROCM_PATH", "gcc": "CC and CXX", DEBUG_PYTHON: "PATH"}
_NAMES = {"cuda-toolkit": "CUDA toolkit", "rocm": "ROCm", "gcc": "GCC", DEBUG_PYTHON: "debug build of Python"}


def lacking(case: Case) -> Iterator[Finding]:
    """Yield an error for each tool that the target resolves from the host and that the host lacks.

    It is a warning if detection failed.
    """
    yield from _lacking_toolkit(case)
    accepted, gcc = case.manifest.system.get("gcc"), chosen_gcc(case)
    if accepted is not None and (gcc is None or gcc.taken is None):
        most = gcc_limit(case)
        limit = f" (GCC {most} at most, for the selected nvcc)" if most is not None else ""
        yield _finding("gcc", accepted, gcc.refused if gcc else (), case.host.compilers, limit)
    accepted, rocm = case.manifest.system.get("rocm"), chosen_rocm(case)
    if accepted is not None and (rocm is None or rocm.taken is None):
        finding = _finding("rocm", accepted, rocm.refused if rocm else (), case.host.rocms)
        unread = isinstance(case.host.rocms, Missing)
        yield replace(finding, unknown=Unknown(Scope.BUILD, "rocms") if unread else None)
    yield from _lacking_debug_python(case)


def debug_builds(accepted: Range, pythons: Iterable[FoundPython]) -> list[FoundPython]:
    """Return the debug builds among Pythons of a host that a target accepts; only their minor is known."""
    return [
        python
        for python in pythons
        if python.debug and any(f"{python.version.major_minor}.{patch}" in accepted for patch in (0, _ANY_PATCH))
    ]


def _lacking_debug_python(case: Case) -> Iterator[Finding]:
    """Yield the finding if a target resolves a debug build of Python from the host, and the host has none."""
    accepted, pythons = case.manifest.system.get(DEBUG_PYTHON), case.host.pythons
    if accepted is None or (isinstance(pythons, Missing) and pythons.kind is ReasonKind.UNREPORTED):
        return
    found = () if isinstance(pythons, Missing) else pythons.value
    # A report may lack the Pythons, or not mark debug builds: then nothing follows from their absence.
    if debug_builds(accepted, found) or any(row.debug is None for row in found):
        return
    refused = tuple(f"{row.path}: {row.version} is not {accepted}" for row in found if row.debug)
    yield replace(_finding(DEBUG_PYTHON, accepted, refused, pythons), fix=INSTALL_DEBUG)


def _lacking_toolkit(case: Case) -> Iterator[Finding]:
    """Yield the finding if a target uses the host's CUDA toolkit and none fits."""
    accepted, choice = case.manifest.system.get("cuda-toolkit"), chosen_toolkit(case)
    if accepted is None or (choice is not None and choice.taken is not None):
        return
    finding = _finding("cuda-toolkit", accepted, choice.refused if choice else (), case.host.toolkits)
    # Without a CUDA release, the required driver is unknown too.
    run, build = takes_toolkit(case.manifest), isinstance(case.host.toolkits, Missing)
    if run or build:
        scope = Scope.BOTH if run and build else Scope.RUN if run else Scope.BUILD
        finding = replace(finding, unknown=Unknown(scope, "toolkits"))
    yield finding


def platform(case: Case) -> Iterator[Finding]:
    """Yield an error if the target does not support the host's platform."""
    manifest, host = case.manifest, case.host
    if not manifest.platforms or case.platform in manifest.platforms:
        return
    sister = sister_hint(manifest, case.platform)
    yield Finding(
        code=PLATFORM,
        severity=Severity.ERROR,
        subject=case.platform,
        message=f"is not a platform of `{manifest.name}`: {', '.join(manifest.platforms)}",
        evidence=f"this host ({host.platform.origin})"
        if isinstance(host.platform, Fact)
        else "no platform was detected",
        source=f"platforms of {manifest.file}",
        fix=sister or f'choose another target, or add "{case.platform}" to `platforms` in the manifest and lock again',
    )


def _finding(
    name: str, accepted: Range, refused: tuple[str, ...], looked: Fact[Any] | Missing, limit: str = ""
) -> Finding:
    wanted = name if accepted.text.strip() in ("", "*") else f"{name} {accepted}"
    taken, unread = f"the target resolves {wanted} from the host", isinstance(looked, Missing)
    install = f"install a {_NAMES[name]}" if wanted == name else f"install a {_NAMES[name]} {accepted}"
    return Finding(
        code=LACKING,
        severity=Severity.WARNING if unread else Severity.ERROR,
        subject=name,
        message=f"{taken}, but detection failed" if unread else f"{taken}, which has none that fits",
        evidence=looked.reason if isinstance(looked, Missing) else "; ".join(refused) or f"searched: {looked.origin}",
        source="[system] of the manifest",
        fix=(
            f"{install}{limit}, or set {_VARIABLES[name]} to an installed one"
            + ("" if name == "rocm" else ", or choose a target that brings its own (`tenv targets`)")
        ),
    )


_OLDEST = Version("3.8")
"""The oldest minor that uv downloads: `uv python list --all-versions --only-downloads` of uv 0.13, 2026-11-23."""


def without_python(case: Case) -> Iterator[Finding]:
    """Yield an error if the machine has no Python that suits the target, and uv can't bring one."""
    pythons, minors = case.host.pythons, case.manifest.python_minors()
    unknown = isinstance(pythons, Missing) and pythons.kind is not ReasonKind.NONE
    if unknown or "python" in case.manifest.dependencies or DEBUG_PYTHON in case.manifest.system:
        return
    found = () if isinstance(pythons, Missing) else pythons.value
    suits = any(not python.debug and python.version.major_minor in minors for python in found)
    if suits or not minors or any(Version(minor) >= _OLDEST for minor in minors):
        return
    newest = max(minors, key=Version)
    there = ", ".join(python.path for python in found) or "none"
    yield Finding(
        code=NO_PYTHON,
        severity=Severity.ERROR,
        subject=f"Python {newest}",
        message=f"is not on this host, and uv downloads none older than {_OLDEST}: the environment can't be created",
        evidence=there if isinstance(pythons, Missing) else f"{there} ({pythons.origin})",
        source="`uv python list --all-versions --only-downloads`",
        fix=f"apt install python{newest} python{newest}-dev python{newest}-venv where the distribution has it, "
        f"or `pyenv install {newest}`",
    )


def without_headers(case: Case) -> Iterator[Finding]:
    """Yield an error if no Python of the machine that suits the target has its headers.

    ``create`` takes the newest with headers, else the newest; where none suits, uv brings one, and that has them.
    """
    pythons, minors = case.host.pythons, case.manifest.python_minors()
    if isinstance(pythons, Missing) or "python" in case.manifest.dependencies or case.manifest.beside:
        return
    accepted = case.manifest.system.get(DEBUG_PYTHON)
    if accepted:
        fitting = debug_builds(accepted, pythons.value)
    else:
        fitting = [python for python in pythons.value if not python.debug and python.version.major_minor in minors]
    if not fitting or any(python.headers for python in fitting):
        return
    taken = max(fitting, key=lambda python: python.version)
    minor = taken.version.major_minor
    yield Finding(
        code=NO_HEADERS,
        severity=Severity.ERROR,
        subject=f"Python {minor}",
        message=(
            "has no Python.h, so that neither PyTorch nor an extension compiles with it; `create` would take it, since "
            "no other Python here suits the target and has its headers"
        ),
        evidence=f"{', '.join(python.path for python in fitting)} ({pythons.origin})",
        source="FindPython of CMake: Development.Module; torch/csrc includes Python.h",
        fix=(
            INSTALL_DEBUG
            if accepted
            else f"apt install python{minor}-dev (Fedora, RHEL: `dnf install python{minor}-devel`), "
            f"or `uv python install {minor}`"
        ),
    )
