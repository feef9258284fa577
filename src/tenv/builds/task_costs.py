"""The costs of a build's tasks: seconds of a core, memory, disk; and the launcher that keeps them within the memory.

Measured with a trunk of June 2026 on a 2-core cloud machine (2.5 GHz class): FillKernel.cu 51 s for one architecture
and 161 s for six and PTX, ActivationGeluKernel.cu 55 s, ReduceMomentKernel.cu 109 s, Sort.cu 234 s; Conv_v8.cpp 100 s
and 2.3 GiB, CUDABlas.cpp 47 s, SpectralOps.cpp 14 s; peaks of `.cu` 0.7 to 1.1 GiB. Attention kernels need about
4.5 GiB (pytorch/pytorch#124018). `tenv build` corrects the seconds by the compiles of its canary.

The launcher makes heavy sources wait for memory, so that the others need not have fewer jobs. CMake puts the value of
``CMAKE_CUDA_COMPILER_LAUNCHER`` before each compilation. The launcher is a shell script in the checkout's ``.tenv``: a
plain ``ninja`` uses it as well, and another installation of tenv changes no command, which would compile everything
again. A heavy source takes one of a few places, or waits for one; the estimate sets their number.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path

from tenv.builds.build_job import BuildJob
from tenv.builds.switches import is_off
from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.files import write_atomic

_GIB = 1 << 30


class TaskKind(StrEnum):
    """The kind of a task."""

    CXX = "C++"
    C = "C"
    CUDA = "CUDA"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Task:
    """One task of Ninja."""

    kind: TaskKind
    """Its kind."""
    output: str
    """Its output, by Ninja's name."""


_KINDS = (
    (re.compile(r"^Building CUDA object (\S+)|^Building NVCC \(Device\) object (\S+)"), TaskKind.CUDA),
    (re.compile(r"^Building CXX object (\S+)"), TaskKind.CXX),
    (re.compile(r"^Building (?:C|ASM\S*) object (\S+)"), TaskKind.C),
    (
        re.compile(r"^Linking \S+ (?:shared library|static library|shared module|executable|device code) (\S+)"),
        TaskKind.LINK,
    ),
)
_CUDA_FIRST, _CUDA_MORE = 33.0, 18.3
"""Seconds of a CUDA file: (161 - 51) / 6 for each architecture, and the rest of 51 for the host part."""
_SECONDS = {TaskKind.C: 1.5, TaskKind.LINK: 3.0, TaskKind.OTHER: 0.5}
_CXX_SECONDS = (
    (re.compile(r"third_party|/_deps/"), 4.0),
    (re.compile(r"cudnn/Conv_v\d"), 100.0),
    (
        re.compile(
            r"VariableType_|TraceType_|ADInplaceOrViewType_|python_torch_functions|Functions_\d|Operators_\d"
            r"|Functionalization_\d|c_shim|\bRegister\w+\.cpp"
        ),
        80.0,
    ),
    (re.compile(r"torch_python\.dir"), 40.0),
    (re.compile(r"\.(AVX2|AVX512|DEFAULT|SVE256|ZVECTOR)\.cpp"), 26.0),
    (re.compile(r"functorch|torch/csrc/(jit|api)/"), 23.0),
    (re.compile(r"torch_cpu\.dir|torch_cuda\.dir|ATen"), 12.0),
    (re.compile(r"^c10/"), 2.0),
    (re.compile(r"test_|_test|benchmark"), 12.0),
)
"""Means over the files of each kind in PyTorch 2.4.0, without its optional parts, on a machine that took 6.2 s for
SpectralOps.cpp, times 14 / 6.2."""
_CXX_OTHER = 6.0
HEAVY_NAMES = ("flash_attn", "flash_fwd", "flash_bwd", "mem_eff_attention", "cutlassB_", "cutlassF_")
"""Parts of the names of CUDA sources that take several GiB: the attention kernels."""
_HEAVY = re.compile("|".join(HEAVY_NAMES))
_MEMORY = {"heavy": 4.5 * _GIB, TaskKind.CUDA: 1.1 * _GIB, TaskKind.CXX: 1.0 * _GIB}
_LINK = {"Release": 2 * _GIB, "RelWithDebInfo": 6 * _GIB, "Debug": 8 * _GIB}
"""Memory of linking libtorch_cpu or libtorch_cuda: an estimate of ours; debug information is most of it."""

DISK = {
    "Release": {TaskKind.CXX: 1.5e6, TaskKind.CUDA: 6e6, TaskKind.C: 2e5},
    "RelWithDebInfo": {TaskKind.CXX: 9e6, TaskKind.CUDA: 12e6, TaskKind.C: 1e6},
    "Debug": {TaskKind.CXX: 12e6, TaskKind.CUDA: 15e6, TaskKind.C: 1e6},
}
"""Bytes of a build folder per object, the libraries made of them counted in: an estimate of ours."""


def kind_of(description: str) -> Task | None:
    """Return the task that a line of Ninja describes; None for a line of another kind."""
    for pattern, kind in _KINDS:
        if match := pattern.match(description):
            return Task(kind, next(group for group in match.groups() if group))
    return Task(TaskKind.OTHER, description) if description else None


def seconds_of(task: Task, architectures: int) -> float:
    """Return the seconds of a core that a task takes on the machine on which they were measured."""
    if task.kind is TaskKind.CUDA:
        factor = 3.0 if _HEAVY.search(task.output) else 1.0
        return (_CUDA_FIRST + _CUDA_MORE * max(architectures, 1)) * factor
    if task.kind is TaskKind.CXX:
        return next((cost for pattern, cost in _CXX_SECONDS if pattern.search(task.output)), _CXX_OTHER)
    return _SECONDS[task.kind]


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """How many compilations the memory carries."""

    jobs: int
    """How many at a time."""
    places: int
    """How many of them may be heavy ones; 0 where none is among the tasks, or where none waits for a place."""
    reason: str
    """The limit."""


def memory_jobs(
    tasks: Iterable[Task], cores: int, memory: int | None, *, waits: bool = False, jobs: int | None = None
) -> MemoryPlan:
    """Return how many compilations the memory carries, and the limit.

    Args:
        tasks: The tasks that are left.
        cores: The processors.
        memory: Bytes; None where they are not known.
        waits: Whether heavy sources wait for one of a few places, so that only those have to fit at their size.
        jobs: The number of jobs that the user wants; None for the best one.
    """
    rows = list(tasks)
    cuda = [task for task in rows if task.kind is TaskKind.CUDA]
    heavy = any(_HEAVY.search(task.output) for task in cuda)
    kind = TaskKind.CUDA if cuda else TaskKind.CXX
    light, what = _MEMORY[kind], f"{kind.value} files"
    more = _MEMORY["heavy"] - light
    if memory is None:
        return MemoryPlan(jobs or cores, int(heavy and waits), f"{cores} cores; the memory is not known")
    if heavy and not waits:
        light, what = _MEMORY["heavy"], "attention kernels"
    spare = memory - more if heavy and waits else memory
    found = jobs or min(cores, max(1, int(spare / light)))
    reason = f"{cores} cores, {memory / _GIB:.1f} GiB of memory at {light / _GIB:.1f} GiB for {what}"
    if jobs:
        reason = "MAX_JOBS of your shell"
    if not (heavy and waits):
        return MemoryPlan(found, 0, reason)
    places = min(found, max(1, int((memory - found * light) / more)))
    places_text = f"{places} attention kernel{'s' if places > 1 else ''} of {_MEMORY['heavy'] / _GIB:.1f} GiB at a time"
    return MemoryPlan(found, places, f"{reason}; {places_text}")


def link_memory(build_type: str) -> int:
    """Return the bytes that a link of libtorch takes: an estimate."""
    return _LINK.get(build_type, _LINK["Release"])


def links_at_once(memory: int | None, build_type: str) -> int:
    """Return how many large libraries may be linked at a time."""
    if memory is None:
        return 1
    return max(1, int(memory / link_memory(build_type)))


def total_seconds(tasks: Iterable[Task], architectures: int, factor: Mapping[TaskKind, float]) -> float:
    """Return the seconds of a core that tasks take on this machine."""
    return sum(seconds_of(task, architectures) * factor.get(task.kind, 1.0) for task in tasks)


VARIABLE = "CMAKE_CUDA_COMPILER_LAUNCHER"

_NAME = "heavy-source"
_RULES = "CMakeFiles/rules.ninja"
_SCRIPT = f"""\
#!/bin/sh
# Written by `tenv build`: a compiler launcher. A source that takes several GiB of memory waits for one of a few places,
# whose number is in the file beside; every other source is compiled at once.
output= last=
for word in "$@"; do
  [ "$last" = -o ] && output=$word
  last=$word
done
case $output in
  {"|".join(f"*{name}*" for name in HEAVY_NAMES)}) ;;
  *) exec "$@" ;;
esac
places=1
[ -r "$0.places" ] && read -r places < "$0.places"
while :; do
  place=1
  while [ "$place" -le "$places" ]; do
    exec 9> "$0.place-$place"
    if flock -n 9; then
      "$@" 9>&-
      exit
    fi
    place=$((place + 1))
  done
  sleep 1
done
"""


def launcher_of(job: BuildJob, environ: Mapping[str, str]) -> Path | None:
    """Return the launcher of a checkout; None where nothing is compiled for GPUs, or the machine has no ``flock``.

    Args:
        job: The build.
        environ: The environment of its programs.
    """
    without_gpu = job.toolchain is None or job.toolchain.cuda is None or is_off(environ.get("USE_CUDA", "1"))
    if without_gpu or process.find("flock", environ.get("PATH")) is None:
        return None
    return job.notes.parent / _NAME


def write_launcher(job: BuildJob) -> None:
    """Write the launcher that the environment of a build names."""
    launcher = launcher_of(job, job.environ)
    if launcher is None or str(launcher) not in job.environ.get(VARIABLE, ""):
        return
    if not launcher.is_file() or launcher.read_text(encoding="utf-8") != _SCRIPT:
        write_atomic(launcher, _SCRIPT)
    launcher.chmod(0o755)


def is_used(job: BuildJob) -> bool:
    """Return whether the rules that CMake has written for Ninja put the launcher before the CUDA compiler."""
    launcher = launcher_of(job, job.environ)
    try:
        rules = (job.folder / _RULES).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return launcher is not None and launcher.is_file() and str(launcher) in rules


def set_places(job: BuildJob, places: int) -> None:
    """Write how many heavy sources are compiled at a time."""
    if launcher := launcher_of(job, job.environ):
        write_atomic(launcher.with_name(f"{_NAME}.places"), f"{places}\n")
