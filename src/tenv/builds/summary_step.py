"""Step `summary`: what PyTorch says that it has configured is held against what the target has and was asked for."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tenv.builds.build_job import BuildJob
from tenv.builds.cmake_cache import read_cache
from tenv.builds.step_report import Done, build_finding
from tenv.builds.switches import is_off, is_on, set_switches
from tenv.checks.rules.interface import Finding, Severity

__all__ = ["check_summary", "read_summary"]

_HEAD = re.compile(r"^-- \*+ Summary \*+$")
_ROW = re.compile(r"^--\s+([A-Za-z+][A-Za-z0-9_+ .()-]*?)\s*:(?:\s+(.*))?$")
_SOURCE = "cmake/Summary.cmake of github.com/pytorch/pytorch"
_PARTS = {
    "USE_CUDA": "cuda",
    "USE_CUDNN": "cudnn",
    "USE_CUSPARSELT": "cusparselt",
    "USE_NCCL": "nccl",
    "USE_MKL": "mkl",
}
"""Switches by the part of the toolchain without which nobody expects them to be on."""
_UNDER = {"USE_CUDNN": "USE_CUDA", "USE_CUSPARSELT": "USE_CUDA", "USE_NCCL": "USE_CUDA", "USE_STATIC_MKL": "USE_MKL"}
"""Switches that a summary leaves out where another one is off."""
_NEEDS = {"USE_CUDNN": ("USE_CUDA",), "USE_CUSPARSELT": ("USE_CUDA",), "USE_NCCL": ("USE_CUDA", "USE_DISTRIBUTED")}
"""Switches by those without which PyTorch's CMake turns them off; USE_NCCL hangs on USE_DISTRIBUTED in newer ones."""
_WORDS = {
    "USE_CUDNN": ("cudnn",),
    "USE_CUSPARSELT": ("cusparselt",),
    "USE_NCCL": ("nccl",),
    "USE_CUDA": ("cuda",),
    "USE_MKL": ("mkl",),
    "USE_STATIC_MKL": ("mkl",),
    "USE_MKLDNN": ("mkldnn", "mkl-dnn", "onednn"),
    "USE_NUMPY": ("numpy",),
    "USE_OPENMP": ("openmp",),
    "USE_DISTRIBUTED": ("distributed", "gloo", "tensorpipe"),
}
_SHOWN = (
    *("TORCH_VERSION", "CMake version", "C++ compiler", "Build type", "Python executable", "BLAS", "USE_CUDA"),
    *("CUDA version", "cuDNN version", "USE_CUSPARSELT", "USE_NCCL", "USE_MPI", "USE_MKL", "USE_MKLDNN"),
    *("USE_OPENMP", "USE_DISTRIBUTED", "BUILD_TEST"),
)
_MOST = 10
_TURNED = re.compile(
    r"turn(?:ed|ing)?\b.{0,40}\boff\b|not found|cannot find|could(?: not|n't) find|disabl", re.IGNORECASE
)


def read_summary(lines: Iterable[str]) -> dict[str, str]:
    """Return the rows of the last summary in a log by their names; empty where there is none."""
    found: dict[str, str] = {}
    within = False
    for line in lines:
        text = line.rstrip()
        if _HEAD.match(text):
            within, found = True, {}
        elif within and text.startswith(("-- Configuring", "CMake ")):
            within = False
        elif within and (match := _ROW.match(text)):
            found[match[1]] = (match[2] or "").strip()
    return found


def check_summary(job: BuildJob) -> Done:
    """Hold the summary against the target, and the switches that were set."""
    log = job.log("configure")
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    rows = read_summary(lines)
    job.summary = rows
    if not rows:
        return Done((), {"rows": {}}, log, ("this revision prints no summary",))
    findings = [*_turned_off(job, rows, lines), *_mpi(job, rows)]
    shown = [f"{name}: {rows[name]}" for name in _SHOWN if rows.get(name)][:_MOST]
    return Done(findings, {"rows": rows}, log, shown)


def _wanted(job: BuildJob) -> dict[str, str]:
    """Return the switches that must be on, each with who wants it."""
    given = set_switches(job.environ) | set_switches(job.request.defines)
    wanted = {name: f"{name}={value} is set" for name, value in given.items() if is_on(value)}
    for name, part in _PARTS.items():
        there = getattr(job.toolchain, part, None)
        unwanted = any(is_off(given.get(switch, "1")) for switch in (name, *_NEEDS.get(name, ())))
        if there is not None and not unwanted:
            wanted.setdefault(name, f"the target has it ({there})")
    return wanted


def _turned_off(job: BuildJob, rows: Mapping[str, str], lines: Sequence[str]) -> Iterator[Finding]:
    cache = read_cache(job.folder / "CMakeCache.txt")
    for name, why in sorted(_wanted(job).items()):
        said = rows.get(name)
        over = _UNDER.get(name, "")
        if said is None and over and is_off(rows.get(over, "1")):
            continue  # what it hangs on is off, and reported
        if said is None or not is_off(said):
            continue
        evidence = _warning(name, lines)
        yield build_finding(
            "TE941",
            name,
            f"was turned off by the configuration ({said or 'empty'}), although {why}",
            evidence or f"summary: {name}: {said}; CMakeCache.txt: {cache.get(name, 'nothing')}",
            _SOURCE,
            f"`tenv verify {job.target.name}` tries the library; `tenv build --allow {name}` goes on without it",
        )


def _warning(name: str, lines: Sequence[str]) -> str:
    """Return the line of the log that says why a switch was turned off, with its number."""
    words = _WORDS.get(name, (name.partition("_")[2].lower(),))
    best = ""
    for number, line in enumerate(lines, start=1):
        lower = line.lower()
        if any(word in lower for word in words) and _TURNED.search(line) and not _ROW.match(line):
            best = f"line {number}: {line.strip()}"
            if "turn" in lower:
                return best
    return best


def _mpi(job: BuildJob, rows: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a warning for an MPI without CUDA in a build with it: gradients of GPUs then fail when they are sent."""
    if not (is_on(rows.get("USE_MPI", "0")) and is_on(rows.get("USE_CUDA", "0"))) or "USE_MPI" in job.context.environ:
        return
    if any("MPI_CUDA" in line or "mpi_built_with_cuda_support:value:true" in line for line in rows.values()):
        return
    yield build_finding(
        "TE942",
        "USE_MPI",
        "an MPI was found by chance, and nothing says that it was built with CUDA: tensors of GPUs then fail",
        f"summary: USE_MPI: {rows['USE_MPI']}",
        _SOURCE,
        "export USE_MPI=0, or USE_MPI=1 if `ompi_info --parsable | grep mpi_built_with_cuda_support` says true",
        Severity.WARNING,
    )
