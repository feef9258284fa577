"""Whether the Python that an environment would be made with can compile extensions: whether it has its headers."""

from collections.abc import Iterator

from tenv.checks.rules.from_machine import INSTALL_DEBUG, debug_builds
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.host.interface import Missing
from tenv.targets.manifest import DEBUG_PYTHON

__all__ = ["HEADERS", "without_headers"]

HEADERS = "TE613"


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
