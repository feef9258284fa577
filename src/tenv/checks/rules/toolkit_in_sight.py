"""Check that the CUDA toolkits on the host do not conflict and are complete."""

from collections.abc import Iterator

from tenv.checks.rules.common import cuda_of
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.core.versions import Version
from tenv.host.interface import Missing
from tenv.host.report import Lead, Toolkit

__all__ = ["CONTRADICTORY", "TWO_TOOLKITS", "contradictory", "two_toolkits"]

TWO_TOOLKITS = "TE304"
CONTRADICTORY = "TE308"

_NUMBERED = ("cuda_cudart", "cuda_nvrtc", "cuda_cccl", "cuda_cuobjdump", "libnvjitlink")
"""Components with the version of the toolkit, as nvcc."""


def two_toolkits(case: Case) -> Iterator[Finding]:
    """Yield a warning if CUDA_HOME (or CUDA_PATH) names another toolkit than the nvcc on PATH."""
    if cuda_of(case) is None or isinstance(case.host.toolkits, Missing):
        return
    toolkits = case.host.toolkits.value
    named = [toolkit for toolkit in toolkits if toolkit.led_by(Lead.CUDA_VARIABLE)]
    on_path = [toolkit for toolkit in toolkits if toolkit.led_by(Lead.PATH)]
    found = {toolkit.path: toolkit for toolkit in (*named, *on_path)}
    if named and len(found) > 1:
        yield Finding(
            code=TWO_TOOLKITS,
            severity=Severity.WARNING,
            subject="CUDA_HOME and PATH",
            message=(
                "name different CUDA toolkits: outside an activated environment, a build may compile with one's "
                "nvcc and link the other's libraries"
            ),
            evidence="; ".join(
                f"{toolkit.ways}: {toolkit.path} ({toolkit.version or 'unknown version'})" for toolkit in found.values()
            ),
            source="CMake's FindCUDAToolkit uses the nvcc of the build, then PATH, then CUDA_PATH",
            fix="activate the environment, which sets both, or unset CUDA_HOME and CUDA_PATH",
        )


def contradictory(case: Case) -> Iterator[Finding]:
    """Yield a warning for each toolkit that a build may find first and whose parts have different releases."""
    if cuda_of(case) is None or isinstance(case.host.toolkits, Missing):
        return
    for toolkit in case.host.toolkits.value:
        if not toolkit.led_by(Lead.CUDA_VARIABLE, Lead.PATH, Lead.DEFAULT_FOLDER):
            continue
        faults = [*(problem.text for problem in toolkit.problems), *_mixed(toolkit)]
        if faults:
            yield Finding(
                code=CONTRADICTORY,
                severity=Severity.WARNING,
                subject=toolkit.path,
                message=f"is not a complete CUDA toolkit: {'; '.join(faults)}",
                evidence=f"found by {toolkit.ways}",
                source="its own files: nvcc, version.json, headers and libraries must have one release",
                fix=(
                    "activate the environment, which puts its own toolkit first, or reinstall this one, or unset "
                    "the variable that names it"
                ),
            )


def _mixed(toolkit: Toolkit) -> Iterator[str]:
    """Yield the components from another minor release than nvcc."""
    components = dict(toolkit.components)
    nvcc = Version.find(components.get("cuda_nvcc", ""))
    for name, text in components.items():
        found = Version.find(text) if name in _NUMBERED else None
        if nvcc and found and found.major_minor != nvcc.major_minor:
            yield f"{name} is {text}, nvcc is {nvcc}"
