"""Check that the target supports the host's platform, and that the host has what the target resolves from it.

That is the CUDA toolkit, the compiler and the debug build of Python of ``[system]``. Both rules need only the manifest
and a probe or two, so that quick commands apply them too.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from tenv.checks.rules.common import chosen_gcc, gcc_limit, takes_toolkit, toolkit_on
from tenv.checks.rules.interface import Case, Finding, Scope, Severity, Unknown
from tenv.core.versions import Range
from tenv.host.interface import Fact, Missing, ReasonKind
from tenv.host.report import FoundPython, HostReport
from tenv.targets.manifest import DEBUG_PYTHON, Manifest
from tenv.targets.search import sister_hint

__all__ = [
    "INSTALL_DEBUG",
    "LACKING",
    "PLATFORM",
    "SCOPES",
    "debug_builds",
    "lacking",
    "lacking_toolkit",
    "other_platform",
    "platform",
]

LACKING = "TE309"
PLATFORM = "TE705"

SCOPES = {LACKING: Scope.BUILD, PLATFORM: Scope.BOTH}
"""Which verdict an error of each code decides."""

INSTALL_DEBUG = "apt install python3-dbg (Debian, Ubuntu) or dnf install python3-debug (Fedora)"
"""The packages of distributions that have a debug build of Python with its headers."""

_ANY_PATCH = 99
_VARIABLES = {"cuda-toolkit": "CUDA_HOME", "gcc": "CC and CXX", DEBUG_PYTHON: "PATH"}
_NAMES = {"cuda-toolkit": "CUDA toolkit", "gcc": "GCC", DEBUG_PYTHON: "debug build of Python"}


def lacking(case: Case) -> Iterator[Finding]:
    """Yield an error for each tool that the target resolves from the host and that the host lacks.

    It is a warning if detection failed.
    """
    if (finding := lacking_toolkit(case.manifest, case.host)) is not None:
        yield finding
    accepted, gcc = case.manifest.system.get("gcc"), chosen_gcc(case)
    if accepted is not None and (gcc is None or gcc.taken is None):
        most = gcc_limit(case)
        limit = f" (GCC {most} at most, for the selected nvcc)" if most is not None else ""
        yield _finding("gcc", accepted, gcc.refused if gcc else (), case.host.compilers, limit)
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


def lacking_toolkit(manifest: Manifest, host: HostReport) -> Finding | None:
    """Return the finding if a target uses the host's CUDA toolkit and none fits."""
    accepted, choice = manifest.system.get("cuda-toolkit"), toolkit_on(manifest, host)
    if accepted is None or (choice is not None and choice.taken is not None):
        return None
    finding = _finding("cuda-toolkit", accepted, choice.refused if choice else (), host.toolkits)
    # Without a CUDA release, the required driver is unknown too.
    run, build = takes_toolkit(manifest), isinstance(host.toolkits, Missing)
    if not run and not build:
        return finding
    scope = Scope.BOTH if run and build else Scope.RUN if run else Scope.BUILD
    return replace(finding, unknown=Unknown(scope, "toolkits"))


def platform(case: Case) -> Iterator[Finding]:
    """Yield an error if the target does not support the host's platform."""
    if (finding := other_platform(case.manifest, case.platform, case.host)) is not None:
        yield finding


def other_platform(manifest: Manifest, platform: str, host: HostReport) -> Finding | None:
    """Return the finding about a target that does not support a platform."""
    if not manifest.platforms or platform in manifest.platforms:
        return None
    sister = sister_hint(manifest, platform)
    evidence = f"this host ({host.platform.origin})" if isinstance(host.platform, Fact) else "no platform was detected"
    return Finding(
        code=PLATFORM,
        severity=Severity.ERROR,
        subject=platform,
        message=f"is not a platform of `{manifest.name}`: {', '.join(manifest.platforms)}",
        evidence=evidence,
        source=f"platforms of {manifest.file}",
        fix=sister or f'choose another target, or add "{platform}" to `platforms` in the manifest and lock again',
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
            f"{install}{limit}, or set {_VARIABLES[name]} to an installed one, or choose a target that brings its "
            "own (`tenv targets`)"
        ),
    )
