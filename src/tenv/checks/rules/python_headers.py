"""Whether there is a Python for an environment, and whether it can compile extensions: whether it has its headers."""

from collections.abc import Iterator

from tenv.checks.rules.from_machine import INSTALL_DEBUG, debug_builds
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.core.versions import Version
from tenv.host.interface import Missing, ReasonKind
from tenv.targets.manifest import DEBUG_PYTHON

__all__ = ["HEADERS", "NONE", "without_headers", "without_python"]

HEADERS = "TE613"
NONE = "TE615"
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
        code=NONE,
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
    if isinstance(pythons, Missing) or "python" in case.manifest.dependencies:
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
        code=HEADERS,
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
