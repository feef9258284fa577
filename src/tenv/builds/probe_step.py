"""Step `probe`: in seconds, whether the environment has the toolkit, the libraries and the tools that a build needs."""

import contextlib
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from tenv.builds.build_environ import cache_choice
from tenv.builds.build_job import BuildJob, BuildWay, Done, build_finding
from tenv.builds.compile_cache import storage_variables, try_compile, unreached
from tenv.builds.distribution import distribute
from tenv.builds.portable import missing_editor
from tenv.builds.switches import is_off, is_on
from tenv.checks.rules.interface import Finding, Severity
from tenv.checks.rules.whole_toolkit import cmake_targets
from tenv.core import process
from tenv.core.errors import TenvError
from tenv.core.file_content import text_or_empty
from tenv.core.names import normalize
from tenv.core.untrusted import without_login
from tenv.core.versions import fits
from tenv.core.wheel_platforms import evaluated, marker_values
from tenv.host.machine import current_platform
from tenv.sources.wheels.project_metadata import build_system
from tenv.toolchain import smoke_tests
from tenv.toolchain.discover import Toolchain
from tenv.toolchain.smoke_tests import Outcome

_CACHE_SECONDS = 60.0
_SKIPPED = ("python", "nvcc", "nvcc-", "torch-", "openmp")
"""Probes that ask more than a build does, by the start of their names: every module imported, a kernel run, each
architecture compiled, the torch that the build replaces. PyTorch's own CMake searches OpenMP."""
_MISSING = re.compile(r"FindCUDAToolkit finds no (CUDA::[\w:, ]+?) with")
_LIBRARIES = {
    "USE_CUDNN": ("cudnn", "cuDNN", "nvidia-cudnn-cu{major}"),
    "USE_CUSPARSELT": ("cusparselt", "cuSPARSELt", "nvidia-cusparselt-cu{major}"),
    "USE_SYSTEM_NCCL": ("nccl", "NCCL", "nvidia-nccl-cu{major}"),
    "USE_STATIC_MKL": ("mkl", "MKL", "mkl-static"),
}
_REQUIREMENTS = re.compile(r"^[ \t]*install_requires\s*=\s*\[(?![ \t]*\])(.*?)^[ \t]*\]", re.MULTILINE | re.DOTALL)
_REQUIREMENT = re.compile(r"^[ \t]*[\"']([A-Za-z0-9][\w.-]*)\s*([^\"']*)[\"']\s*,", re.MULTILINE)
_PYTHON = re.compile(r"""^[ \t]*python_requires\s*=\s*["']([^"']+)["']""", re.MULTILINE)
_MICROS = 40
"""More releases than any minor version of Python has had: 3.7 and 3.8 ended at 17 and 20."""
_BACKENDS = {BuildWay.SCIKIT: "scikit-build-core", BuildWay.EXTENSION_SCIKIT: "scikit-build-core"}
"""The package behind the backend, which a backend of the project's own imports."""


def check_probe(job: BuildJob) -> Done:
    """Try the parts that the build needs before it is configured."""
    toolchain = job.toolchain
    assert toolchain is not None  # noqa: S101 (the step before has made the environment)
    findings = [*_programs(job), *missing_editor(job), *_cache_fault(job), *distribute(job)]
    findings += () if job.extension else _libraries(job, toolchain)
    outcomes = _try(job, toolchain)
    findings += [found for outcome in outcomes if not outcome.ok for found in _failed(job, outcome)]
    findings += requirement_faults(job, toolchain)
    facts: dict[str, Any] = {
        "probes": [{"name": one.name, "ok": one.ok, "seconds": one.seconds} for one in outcomes],
        "distribute": job.offer and asdict(job.offer),
    }
    names = ", ".join(one.name for one in outcomes if one.ok)
    log = _write(job, outcomes)
    lines = (*((f"works: {names}",) if names else ()), *((job.offer.words,) if job.offer else ()))
    return Done(findings, facts, log, lines)


def _programs(job: BuildJob) -> Iterator[Finding]:
    needed = ("ninja",) if job.found.way is BuildWay.EXTENSION else ("cmake", "ninja")
    for name in needed:
        if process.find(name, job.environ.get("PATH")) is None:
            yield build_finding(
                "TE922",
                name,
                "is neither in the environment nor on PATH",
                f"PATH of {job.environment.prefix}",
                "torch/utils/cpp_extension.py" if job.extension else "README.md of github.com/pytorch/pytorch",
                f'add {name} = "*" to [pypi-dependencies] of {job.target.name}, then `tenv lock {job.target.name}`',
                Severity.ERROR if name == "cmake" else Severity.WARNING,
            )


def _cache_fault(job: BuildJob) -> Iterator[Finding]:
    """Yield a finding where a storage does not answer: sccache (0.16) compiles nothing then, and ccache shares nothing.

    The build goes on without the storage. It ends where the cache compiles nothing without it either.
    """
    cache = cache_choice(job, job.environ)
    if cache.program is None or not cache.storage:
        return
    fault = "compiles nothing with"
    if not (reason := try_compile(cache, job.environ, job.notes, _CACHE_SECONDS)):
        fault = "does not reach"
        if not (reason := unreached(cache, job.environ, job.notes, _CACHE_SECONDS)):
            return
    named = storage_variables(cache.name, cache.storage, {})
    kept = job.context.environ
    without = {name: value for name, value in job.environ.items() if name not in named or name in kept}
    goes_on = not try_compile(cache, without, job.notes, _CACHE_SECONDS)
    if goes_on:
        job.environ, job.storage_gone = without, True
    yield build_finding(
        "TE922",
        cache.name,
        f"{fault} the storage {without_login(cache.storage)}"
        + (", so the build goes on without it" if goes_on else ""),
        reason,
        "[build] storage, or cache-storage of config.toml",
        f"start or correct the storage; `{cache.name} --show-stats` shows the error; "
        'cache = "off" in [build] builds without it',
        Severity.WARNING if goes_on else Severity.ERROR,
    )


def _libraries(job: BuildJob, toolchain: Toolchain) -> Iterator[Finding]:
    """Yield the libraries that a switch asks for and that the environment does not hold."""
    with_cuda = not is_off(job.environ.get("USE_CUDA", "1")) and toolchain.cuda_version is not None
    major = str(toolchain.cuda_version or "").partition(".")[0]
    for switch, (field, library, package) in _LIBRARIES.items():
        wanted = is_on(job.environ.get(switch, "")) and (with_cuda or field == "mkl")
        if wanted and getattr(toolchain, field) is None:
            yield build_finding(
                "TE921",
                library,
                f"is not in the environment, and {switch}={job.environ[switch]} asks for it",
                f"{toolchain.prefix}: no header of it",
                f"{switch} of the target, or of your shell",
                f"add {package.format(major=major)} to [pypi-dependencies] of {job.target.name}, or {switch}=0",
            )


def _try(job: BuildJob, toolchain: Toolchain) -> list[Outcome]:
    parts: tuple[str, ...] = ()
    if toolchain.cuda_version is not None and not job.extension:
        manifest = job.target.manifest.on(current_platform())
        parts = cmake_targets(manifest, job.context.facts(), toolchain.cuda_version, job.environ)
    planned = [
        probe
        for probe in smoke_tests.plan(toolchain, job.environ, (), gpu=False, parts=parts)
        if probe.name not in _SKIPPED and not probe.name.startswith(tuple(word for word in _SKIPPED if "-" in word))
    ]
    job.context.progress.step("trying the environment's tools", len(planned))
    with ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(lambda probe: smoke_tests.run(probe, job.environ, bound=False), planned))


def _failed(job: BuildJob, outcome: Outcome) -> Iterator[Finding]:
    match = _MISSING.search(outcome.log)
    repair = f"`tenv create {job.target.name} --repair` installs again what was changed; `tenv verify` looks further"
    if match:
        for name in match[1].split(", "):
            package = name.removeprefix("CUDA::").replace("_", "-")
            yield build_finding(
                "TE921",
                name,
                f"target was not found by find_package(CUDAToolkit), and PyTorch links it (package {package})",
                outcome.log.splitlines()[-1],
                "FindCUDAToolkit of CMake; src/tenv/facts/data/cuda_parts.toml",
                repair,
            )
        return
    yield build_finding(
        "TE922",
        outcome.name,
        "gave no answer in time" if outcome.late else "does not work in this environment",
        _reason(outcome.log.splitlines()),
        f"the probe `{outcome.name}` of `tenv verify`",
        f"run the same command again when this machine has less to do; {repair}" if outcome.late else repair,
    )


def _reason(lines: list[str]) -> str:
    """Return the last line of a log with an error, else its last line; CMake's message begins below such a line."""
    at = next((at for at in range(len(lines) - 1, -1, -1) if "error" in lines[at].lower()), len(lines) - 1)
    if not re.match(r"CMake Error at .*:$", lines[at]):
        return lines[at]
    message = itertools.takewhile(lambda line: line.startswith("  ") or not line, lines[at + 1 :])
    return " ".join(" ".join(message).split()) or lines[at]


def _write(job: BuildJob, outcomes: list[Outcome]) -> Path | None:
    if job.dry:
        return None
    log = job.log("probe")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("\n\n".join(f"# {one.name}\n{one.log}" for one in outcomes) + "\n", encoding="utf-8")
    return log


def run_time_requirements(job: BuildJob) -> tuple[str, ...]:
    """Return the package's run-time requirements as PEP 508 lines: from pyproject.toml, else from setup.py."""
    declared = _project(job).get("dependencies")
    if isinstance(declared, list):
        return tuple(row for row in declared if isinstance(row, str))
    match = _REQUIREMENTS.search(text_or_empty(job.checkout / "setup.py"))
    return tuple(f"{name}{rest}" for name, rest in _REQUIREMENT.findall(match[1])) if match else ()


def _project(job: BuildJob) -> Mapping[str, object]:
    """Return the table ``[project]`` of pyproject.toml; empty without one that can be read."""
    import tomli

    try:
        project = tomli.loads(text_or_empty(job.checkout / "pyproject.toml")).get("project")
    except (ValueError, RecursionError):
        return {}
    return project if isinstance(project, dict) else {}


def requirement_faults(job: BuildJob, toolchain: Toolchain) -> Iterator[Finding]:
    """Yield the requirements that the environment lacks: those of the build end it, the others its import."""
    found = _lacking(run_time_requirements(job), toolchain)
    if found:
        yield _lack(job, found, "when {} runs", "dependencies", Severity.WARNING)
    file = job.checkout / "pyproject.toml"
    if job.found.way is BuildWay.LIBTORCH or not (job.extension or file.is_file()):  # setup.py runs without pip
        return
    with contextlib.suppress(TenvError, OSError):  # the backend reports a file that can't be read
        requires, backend, _ = build_system(file.read_bytes() if file.is_file() else None, job.package)
        named = {name.partition(".")[0].replace("_", "-") for name in (backend, _BACKENDS.get(job.found.way, ""))}
        found = {
            name: version
            for name, version in _lacking(requires, toolchain).items()
            if process.find(name, job.environ.get("PATH")) is None  # conda's CMake and Ninja are no wheels
        }
        if found:
            severity = Severity.ERROR if named & {*found} else Severity.WARNING
            yield _lack(job, found, "to build {}", "[build-system] of its pyproject.toml", severity)
    if job.extension:
        yield from _other_python(job, toolchain)


def _lacking(lines: Iterable[str], toolchain: Toolchain) -> dict[str, str]:
    """Return the requirements that the environment does not hold: their versions by their names."""
    from packaging.requirements import InvalidRequirement, Requirement

    there: dict[str, Distribution] = {
        normalize(one.name): one for one in distributions(path=[str(toolchain.site_packages)]) if one.name
    }
    values = marker_values(current_platform(), _minor(toolchain))
    missing: dict[str, str] = {}
    for line in lines:
        try:
            asked = Requirement(line)
        except InvalidRequirement:
            continue
        found = there.get(normalize(asked.name))
        if asked.marker is not None and not evaluated(asked.marker, values):
            continue
        if found is None or not fits(asked.specifier, found.version):
            missing[normalize(asked.name)] = f"{asked.specifier or '*'}"
    return missing


def _minor(toolchain: Toolchain) -> str:
    """Return the Python of an environment, as 3.12."""
    match = re.search(r"python(\d+\.\d+)", str(toolchain.site_packages))
    return match[1] if match else f"{sys.version_info.major}.{sys.version_info.minor}"


def _lack(job: BuildJob, missing: Mapping[str, str], why: str, source: str, severity: Severity) -> Finding:
    one, why = len(missing) == 1, why.format(job.package)
    rows = "; ".join(f'{name} = "{version}"' for name, version in missing.items())
    return build_finding(
        "TE923",
        ", ".join(missing),
        f"{'is' if one else 'are'} required {why}, and the environment does not hold {'it' if one else 'them'}",
        str(toolchain.site_packages if (toolchain := job.toolchain) else job.environment.prefix),
        f"{job.checkout}: {source}",
        f"add to [pypi-dependencies] of {job.target.name}: {rows}; then `tenv lock {job.target.name}`",
        severity,
    )


def _other_python(job: BuildJob, toolchain: Toolchain) -> Iterator[Finding]:
    """Yield that the package does not accept the Python of the environment: pip and uv install no such package."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    named = _project(job).get("requires-python") or "".join(_PYTHON.findall(text_or_empty(job.checkout / "setup.py")))
    try:
        accepted = SpecifierSet(str(named))
    except InvalidSpecifier:
        return
    minor = _minor(toolchain)
    if any(fits(accepted, f"{minor}.{micro}") for micro in range(_MICROS)):
        return
    yield build_finding(
        "TE923",
        "python",
        f"{minor} is in the environment, and {job.package} requires {named}",
        str(toolchain.python),
        f"{job.checkout}: requires-python of {job.package}",
        f'`python = "{named}"` in the manifest of {job.target.name}, then `tenv lock {job.target.name}`',
    )
