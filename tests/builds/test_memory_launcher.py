"""Heavy CUDA sources wait for memory, by a compiler launcher; the others keep their jobs."""

import itertools
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tenv.builds import task_costs
from tenv.builds.build_job import BuildJob
from tenv.builds.task_costs import Task, TaskKind, memory_jobs
from tests.support.each import each

GIB = 1 << 30
HEAVY = "CMakeFiles/torch_cuda.dir/flash_attn/flash_fwd_hdim64.cu.o"
LIGHT = "CMakeFiles/torch_cuda.dir/native/cuda/FillKernel.cu.o"

needs_flock = pytest.mark.skipif(shutil.which("flock") is None, reason="no flock")


def tasks(*outputs: str) -> list[Task]:
    return [Task(TaskKind.CUDA, output) for output in outputs]


@pytest.fixture
def job(tmp_path: Path) -> BuildJob:
    """A build of a target with CUDA, as far as the launcher asks for it."""
    notes = tmp_path / "checkout" / ".tenv" / "builds" / "cuda130"
    notes.mkdir(parents=True)
    folder = tmp_path / "build"
    folder.mkdir()
    toolchain = SimpleNamespace(cuda=tmp_path / "cuda")
    made = SimpleNamespace(notes=notes, folder=folder, toolchain=toolchain, environ=dict(os.environ))
    job = cast("BuildJob", made)
    launcher = task_costs.launcher_of(job, job.environ)
    if launcher:
        job.environ[task_costs.VARIABLE] = str(launcher)
        task_costs.write_launcher(job)
    return job


def start(job: BuildJob, output: Path, source: str) -> "subprocess.Popen[bytes]":
    """Start a compiler that notes when it begins and ends, below the launcher."""
    code = "import sys, time; from pathlib import Path; out = Path(sys.argv[2]); "
    code += "begun = time.time(); time.sleep(0.5); out.write_text(f'{begun} {time.time()}'); sys.exit(3)"
    launcher = str(task_costs.launcher_of(job, job.environ))
    return subprocess.Popen([launcher, sys.executable, "-c", code, "-o", str(output), "-c", source])


def spans(paths: list[Path]) -> list[tuple[float, float]]:
    return sorted((float(begun), float(ended)) for begun, ended in (path.read_text().split() for path in paths))


def run(job: BuildJob, folder: Path, outputs: list[str]) -> list[tuple[float, float]]:
    paths = [folder / output for output in outputs]
    children = [start(job, path, "flash_attn.cu") for path in paths]
    assert [child.wait(180) for child in children] == [3] * len(children)  # the compiler's own status
    return spans(paths)


def overlaps(found: list[tuple[float, float]]) -> bool:
    return any(one[1] > other[0] for one, other in itertools.pairwise(found))


@needs_flock
@pytest.mark.long
def test_heavy_sources_come_one_after_the_other_where_there_is_one_place(job: BuildJob, tmp_path: Path) -> None:
    task_costs.set_places(job, 1)
    assert not overlaps(run(job, tmp_path, [f"flash_fwd_{number}.cu.o" for number in range(3)]))


@needs_flock
def test_two_places_hold_two_and_other_sources_wait_for_none(job: BuildJob, tmp_path: Path) -> None:
    task_costs.set_places(job, 2)
    assert overlaps(run(job, tmp_path, ["flash_fwd_1.cu.o", "flash_fwd_2.cu.o"]))
    task_costs.set_places(job, 1)
    assert overlaps(run(job, tmp_path, [f"FillKernel{number}.cu.o" for number in range(3)]))


@needs_flock
def test_a_killed_compilation_gives_its_place_back(job: BuildJob, tmp_path: Path) -> None:
    task_costs.set_places(job, 1)
    held = start(job, tmp_path / "flash_fwd_held.cu.o", "a.cu")
    time.sleep(0.1)
    held.kill()
    held.wait(180)
    assert run(job, tmp_path, ["flash_fwd_next.cu.o"])


@needs_flock
@pytest.mark.skipif(None in map(shutil.which, ("cmake", "ninja", "c++")), reason="no CMake, Ninja or compiler")
def test_cmake_puts_it_before_the_compiler_and_the_estimate_sees_that(job: BuildJob, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(x CXX)\nadd_library(x x.cpp)\n"
    )
    (source / "x.cpp").write_text("int x() { return 1; }\n")
    plain = {**os.environ, "CMAKE_CXX_COMPILER_LAUNCHER": job.environ[task_costs.VARIABLE]}
    assert not task_costs.is_used(job)
    words = ["cmake", "-G", "Ninja", "-S", str(source), "-B", str(job.folder)]
    subprocess.run(words, env=plain, check=True, capture_output=True)
    assert task_costs.is_used(job)
    subprocess.run(["cmake", "--build", str(job.folder)], check=True, capture_output=True)
    assert list(job.folder.glob("libx.a"))


def test_a_build_without_gpus_has_no_launcher(job: BuildJob) -> None:
    assert task_costs.launcher_of(job, {**os.environ, "USE_CUDA": "0"}) is None
    cast("Any", job).toolchain = SimpleNamespace(cuda=None)
    assert task_costs.launcher_of(job, os.environ) is None


@each(
    "cores, memory, waits, jobs, places",
    [
        (64, 128, False, 28, 0),
        (64, 128, True, 64, 16),
        (16, 32, True, 16, 4),
        (8, 8, True, 4, 1),
        (2, 24, True, 2, 2),
        (8, 3, True, 1, 1),
    ],
)
def test_the_jobs_go_by_the_light_files_where_the_heavy_ones_wait(
    cores: int, memory: int, waits: bool, jobs: int, places: int
) -> None:
    plan = memory_jobs(tasks(HEAVY, LIGHT), cores, memory * GIB, waits=waits)
    assert (plan.jobs, plan.places) == (jobs, places)
    carried = (plan.jobs - plan.places) * 1.1 + plan.places * 4.5
    assert not waits or carried <= memory or plan.jobs == 1


def test_the_jobs_of_the_user_stay_and_the_places_follow_from_them() -> None:
    plan = memory_jobs(tasks(HEAVY, LIGHT), 16, 32 * GIB, waits=True, jobs=4)
    assert (plan.jobs, plan.places) == (4, 4)
    assert plan.reason.startswith("MAX_JOBS of your shell; 4 attention kernels")


def test_without_heavy_sources_there_are_no_places() -> None:
    assert memory_jobs(tasks(LIGHT), 16, 32 * GIB, waits=True).places == 0
    assert memory_jobs(tasks(LIGHT, HEAVY), 16, None, waits=True).jobs == 16
