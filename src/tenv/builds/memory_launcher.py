"""A compiler launcher that makes heavy sources wait for memory, so that the others need not have fewer jobs.

CMake puts what ``CMAKE_CUDA_COMPILER_LAUNCHER`` names before each compilation. The launcher is a shell script in the
checkout's own ``.tenv``, so that a plain ``ninja`` uses it as well, and so that another installation of tenv changes no
command, which would compile everything again. A heavy source takes one of a few places, or waits for one; the estimate
says how many there are.
"""

from collections.abc import Mapping
from pathlib import Path

from tenv.builds.build_job import BuildJob
from tenv.builds.switches import is_off
from tenv.builds.task_costs import HEAVY_NAMES
from tenv.core import process
from tenv.core.files import write_atomic

__all__ = ["VARIABLE", "is_used", "launcher_of", "set_places", "write_launcher"]

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
    """Say how many heavy sources are compiled at a time."""
    if launcher := launcher_of(job, job.environ):
        write_atomic(launcher.with_name(f"{_NAME}.places"), f"{places}\n")
