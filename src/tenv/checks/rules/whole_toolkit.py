"""Check the CUDA toolkits of the host: they do not conflict, and the one of the target is complete for PyTorch.

Parts are searched in the same places as by CMake's FindCUDAToolkit (`tenv.host.toolkit_content`).
``tenv/facts/data/cuda_parts.toml`` lists the parts that a revision and its switches need.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from tenv.checks.rules.common import chosen_toolkit, cuda_of, doubt, on_windows
from tenv.checks.rules.driver_library import nvcc_flags
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.core.versions import Version
from tenv.facts.cuda_parts import ToolkitPart
from tenv.facts.tables import Facts
from tenv.host.interface import Missing
from tenv.host.report import Lead, Toolkit
from tenv.targets.manifest import Manifest

PARTS = "TE311"
TWO_TOOLKITS = "TE304"
CONTRADICTORY = "TE308"

_OFF = ("0", "OFF", "NO", "FALSE", "N")
_CONDA = re.compile(r"/(envs|[^/]*(conda|mamba|miniforge)[^/]*)(/|$)")
"""The part that paths of toolkits in conda environments have."""
_DETECTED = ("libcublas", "libcufft", "libcurand", "libcusolver", "libcusparse", "cuda_nvrtc")
"""Components that are detected by versions in file names, so that their absence from a list is significant."""
_ENOUGH = 3


def without_parts(case: Case) -> Iterator[Finding]:
    """Yield an error for missing parts that configuring PyTorch needs, a warning for those that only kernels need.

    Each toolkit has at most one finding of each kind.
    """
    choice, cuda = chosen_toolkit(case), cuda_of(case)
    toolkit = choice.taken if choice else None
    if toolkit is None or cuda is None or on_windows(case):
        return
    missing = [(part, gone) for part, gone in _missing(case, toolkit, cuda) if _is_needed(case, part)]
    for configures in (False, True):
        if found := [(part, gone) for part, gone in missing if part.configures is configures]:
            yield _finding(toolkit, cuda, found, compiles_not=configures)


def _missing(case: Case, toolkit: Toolkit, cuda: Version) -> Iterator[tuple[ToolkitPart, tuple[str, ...]]]:
    """Yield each incomplete part with its missing files."""
    brought = {package.name for package in case.lock.conda.get(case.platform, ())} if case.lock else set()
    components = dict(toolkit.components)
    for part in case.facts.cuda_parts.parts:
        if part.conda in brought or (part.cuda_from and cuda < part.cuda_from):
            continue
        if toolkit.absent is not None:
            gone = tuple(file for file in part.files_in(cuda) if file in toolkit.absent)
        else:  # a report without this value; most libraries imply that they were searched
            seen = sum(name in components for name in _DETECTED) >= _ENOUGH
            lacks = seen and part.component in _DETECTED and part.component not in components
            gone = (part.component,) if lacks else ()
        if gone:
            yield part, gone


def _is_needed(case: Case, part: ToolkitPart) -> bool:
    """Return whether a part is needed: by the named revision, else by every revision of the target."""
    own = {name: request.text or "" for name, request in case.manifest.environment.items()}
    environ = {**case.exported, **own}  # activation overrides the caller's variables
    if case.source is None:
        return _is_always_needed(part, case.manifest, case.facts, environ)
    return not _is_off(part, environ) and part.needed_by(case.source.release)


def _is_off(part: ToolkitPart, environ: Mapping[str, str]) -> bool:
    return bool(part.switch) and environ.get(part.switch, "").upper() in _OFF


def _is_always_needed(part: ToolkitPart, manifest: Manifest, facts: Facts, environ: Mapping[str, str]) -> bool:
    """Return whether every revision of a target needs a part."""
    if _is_off(part, environ):
        return False
    if part.first is None and part.last is None:
        return True
    wanted = manifest.pytorch
    releases = [row.version for row in facts.pytorch_build.releases if wanted and str(row.version) in wanted]
    return bool(releases) and all(map(part.needed_by, releases))


def exported_switches(facts: Facts, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the caller's switches that decide on parts of a toolkit and on ROCm, and the caller's nvcc flags."""
    names = {part.switch for part in facts.cuda_parts.parts if part.switch}
    names |= {"HSA_OVERRIDE_GFX_VERSION", "PYTORCH_ROCM_ARCH", "USE_ROCM"}
    return {**nvcc_flags(environ), **{name: environ[name] for name in sorted(names) if name in environ}}


def cmake_targets(manifest: Manifest, facts: Facts, cuda: Version, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the parts that FindCUDAToolkit must find for every revision of a target, without ``CUDA::``.

    Args:
        manifest: The target's manifest for this platform.
        facts: The tables.
        cuda: The release of the toolkit.
        environ: The environment variables of the build, with its switches.
    """
    parts = (part for part in facts.cuda_parts.parts if _is_always_needed(part, manifest, facts, environ))
    return tuple(name for part in parts for name in part.cmake_targets(cuda))


def _finding(
    toolkit: Toolkit, cuda: Version, missing: list[tuple[ToolkitPart, tuple[str, ...]]], *, compiles_not: bool
) -> Finding:
    names = ", ".join(f"{part.name} ({', '.join(gone)})" for part, gone in missing)
    then = "PyTorch does not compile" if compiles_not else "PyTorch can't be configured"
    parts = [part for part, _ in missing]
    return Finding(
        code=PARTS,
        severity=Severity.WARNING if compiles_not else Severity.ERROR,
        subject=toolkit.path,
        message=f"lacks {names}, and without {'them' if len(missing) > 1 else 'that'} {then}{_doubts(parts)}",
        evidence=f"CUDA {toolkit.version or cuda}, found by {toolkit.ways}",
        source="; ".join(dict.fromkeys(part.basis.source for part in parts)),
        fix=_fix(toolkit, cuda, parts),
    )


def _doubts(parts: Iterable[ToolkitPart]) -> str:
    return doubt(*(part.basis for part in parts))


def _fix(toolkit: Toolkit, cuda: Version, parts: list[ToolkitPart]) -> str:
    """Return the command that installs the parts, by the origin of the toolkit, and the switches that avoid them."""
    switches = [f"{part.switch}=0" for part in parts if part.switch]
    without = f", or build with {' '.join(switches)}" if len(switches) == len(parts) else ""
    if toolkit.home == "/usr" or toolkit.path == "/usr":
        names = ["libcufile-dev" if part.component == "libcufile" else "nvidia-cuda-dev" for part in parts]
        return f"apt install {' '.join(dict.fromkeys(names))}{without}"
    if _CONDA.search(toolkit.path):
        names = list(dict.fromkeys(part.conda for part in parts))
        release = f'"cuda-version={cuda.major_minor}"'
        return f"conda install -c conda-forge {release} {' '.join(names)}{without}"
    apt = " ".join(dict.fromkeys(part.package(cuda) for part in parts))
    dnf = re.sub(r"-dev(?=-\d|$|\s)", "-devel", apt)
    return f"apt install {apt} (NVIDIA's repository; `dnf install {dnf}`){without}"


_WITH_RELEASE = ("cuda_cudart", "cuda_nvrtc", "cuda_cccl", "cuda_cuobjdump", "libnvjitlink")
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
        found = Version.find(text) if name in _WITH_RELEASE else None
        if nvcc and found and found.major_minor != nvcc.major_minor:
            yield f"{name} is {text}, nvcc is {nvcc}"
