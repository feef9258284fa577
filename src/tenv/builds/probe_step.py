"""Step `probe`: in seconds, whether the environment has the toolkit, the libraries and the tools that a build needs."""

import itertools
import re
import shlex
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tenv.builds.build_environ import cache_storage
from tenv.builds.build_job import BuildJob, Done, build_finding
from tenv.builds.compile_cache import choose_cache
from tenv.builds.portable import missing_editor
from tenv.builds.switches import is_off, is_on
from tenv.checks.rules.interface import Finding, Severity
from tenv.checks.rules.whole_toolkit import cmake_targets
from tenv.core import process
from tenv.core.file_content import read_text
from tenv.core.missing import Missing
from tenv.core.untrusted import without_login
from tenv.core.versions import fits
from tenv.core.wheel_platforms import evaluated
from tenv.host.machine import current_platform
from tenv.toolchain import smoke_tests
from tenv.toolchain.discover import Toolchain
from tenv.toolchain.smoke_tests import Outcome

__all__ = ["check_probe", "run_time_requirements"]

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
_REQUIREMENTS = re.compile(r"^[ \t]*install_requires\s*=\s*\[(.*?)^[ \t]*\]", re.MULTILINE | re.DOTALL)
_REQUIREMENT = re.compile(r"^[ \t]*[\"']([A-Za-z0-9][\w.-]*)\s*([^\"']*)[\"']\s*,", re.MULTILINE)


def check_probe(job: BuildJob) -> Done:
    """Try the parts that the build needs before it is configured."""
    toolchain = job.toolchain
    assert toolchain is not None  # noqa: S101 (the step before has made the environment)
    findings = [*_programs(job), *missing_editor(job), *_cache_fault(job), *_libraries(job, toolchain)]
    outcomes = _try(job, toolchain)
    findings += [found for outcome in outcomes if not outcome.ok for found in _failed(job, outcome)]
    findings += _requirements(job, toolchain)
    facts = {"probes": [{"name": one.name, "ok": one.ok, "seconds": one.seconds} for one in outcomes]}
    names = ", ".join(one.name for one in outcomes if one.ok)
    log = _write(job, outcomes)
    return Done(findings, facts, log, (f"works: {names}",) if names else ())


def _programs(job: BuildJob) -> Iterator[Finding]:
    for name, package in (("cmake", "cmake"), ("ninja", "ninja")):
        if process.find(name, job.environ.get("PATH")) is None:
            yield build_finding(
                "TE922",
                name,
                "is neither in the environment nor on PATH",
                f"PATH of {job.environment.prefix}",
                "README.md of github.com/pytorch/pytorch",
                f'add {package} = "*" to [pypi-dependencies] of {job.target.name}, then `tenv lock {job.target.name}`',
                Severity.ERROR if name == "cmake" else Severity.WARNING,
            )


def _cache_fault(job: BuildJob) -> Iterator[Finding]:
    """Yield an error where the compile cache can't compile: sccache ends where its storage does not answer."""
    cache = choose_cache(job.target.manifest.cache, job.environ, cache_storage(job))
    if cache.program is None or not cache.storage:
        return
    if socket := job.environ.get("SCCACHE_SERVER_UDS"):
        Path(socket).parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "probe.c").write_text("int tenv_probe;\n", encoding="utf-8")
        words = [str(cache.program), *shlex.split(job.environ.get("CC", "cc")), "-c", "probe.c", "-o", "probe.o"]
        answer = process.run(words, environment=job.environ, folder=Path(folder), timeout=_CACHE_SECONDS)
    if isinstance(answer, Missing) or answer.status:
        reason = answer.reason if isinstance(answer, Missing) else answer.stderr.strip().splitlines()[0]
        yield build_finding(
            "TE922",
            cache.name,
            f"compiles nothing with the storage {without_login(cache.storage)}",
            reason,
            "[build] storage, or cache-storage of config.toml",
            f"start or correct the storage; `{cache.name} {shlex.join(words[1:])}` shows the error; "
            'cache = "off" in [build] builds without it',
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
    if toolchain.cuda_version is not None:
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
        "does not work in this environment",
        _reason(outcome.log.splitlines()),
        f"the probe `{outcome.name}` of `tenv verify`",
        repair,
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
    """Return torch's run-time requirements as PEP 508 lines: from pyproject.toml, else from setup.py."""
    import tomli

    try:
        project = tomli.loads(read_text(job.checkout / "pyproject.toml")).get("project", {})
    except (OSError, ValueError, RecursionError):
        project = {}
    declared = project.get("dependencies") if isinstance(project, dict) else None
    if isinstance(declared, list):
        return tuple(row for row in declared if isinstance(row, str))
    try:
        setup = read_text(job.checkout / "setup.py", errors="replace")
    except OSError:
        return ()
    match = _REQUIREMENTS.search(setup)
    return tuple(f"{name}{rest}" for name, rest in _REQUIREMENT.findall(match[1])) if match else ()


def _requirements(job: BuildJob, toolchain: Toolchain) -> Iterator[Finding]:
    """Yield the run-time requirements of torch that the environment lacks; the import would fail after the hours."""
    from importlib.metadata import Distribution, distributions  # late: for those who build

    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    there: dict[str, Distribution] = {
        canonicalize_name(one.name): one for one in distributions(path=[str(toolchain.site_packages)]) if one.name
    }
    missing: dict[str, str] = {}
    for line in run_time_requirements(job):
        try:
            asked = Requirement(line)
        except InvalidRequirement:
            continue
        found = there.get(canonicalize_name(asked.name))
        if asked.marker is not None and not evaluated(asked.marker, {}):
            continue
        if found is None or not fits(asked.specifier, found.version):
            missing[asked.name] = f"{asked.specifier or '*'}"
    if missing:
        names = ", ".join(missing)
        rows = "; ".join(f'{name} = "{version}"' for name, version in missing.items())
        yield build_finding(
            "TE923",
            names,
            "is required when torch runs, and the environment does not hold it"
            if len(missing) == 1
            else "are required when torch runs, and the environment does not hold them",
            str(toolchain.site_packages),
            f"{job.checkout}: dependencies of torch",
            f"add to [pypi-dependencies] of {job.target.name}: {rows}; then `tenv lock {job.target.name}`",
            Severity.WARNING,
        )
