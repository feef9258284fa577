"""nvcc by itself, and the C++ libraries that come with it."""

from pathlib import Path

import pytest

from tests.integration.bench import PROJECTS, Bench, check
from tests.integration.fatbin import Kind, images

pytestmark = pytest.mark.real


def test_nvcc_compiles_for_the_gpus_it_is_asked_for(bench: Bench, tmp_path: Path) -> None:
    program = tmp_path / "kernel.o"
    architectures = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in (80, 90)]
    source = PROJECTS / "toolkit" / "kernel.cu"
    bench.run("cuda130", "nvcc", *architectures, "-c", source, "-o", program)
    section = tmp_path / "fatbin"
    check(["objcopy", f"--dump-section=.nv_fatbin={section}", program], tmp_path)
    assert images(section) == {(Kind.CUBIN, 80), (Kind.CUBIN, 90)}


def test_nvcc_works_in_the_environment_alone(bench: Bench, tmp_path: Path) -> None:
    cuda = bench.prefix("cuda130") / "cuda"
    source = PROJECTS / "toolkit" / "kernel.cu"
    talk = bench.run("cuda130", "nvcc", "--dryrun", "-c", source, "-o", tmp_path / "kernel.o")
    assert f"#$ TOP={cuda}/bin/.." in talk
    assert "/usr/local/cuda" not in talk.split("#$ INCLUDES=", 1)[1]
    assert "release 13.0, V13.0." in bench.run("cuda130", "nvcc", "--version")


def test_nvcc_finds_thrust_and_cub(bench: Bench, tmp_path: Path) -> None:
    read = bench.run("cuda130", "nvcc", "-arch=sm_90", "-M", PROJECTS / "cccl" / "sort.cu")
    for header in ("thrust/sort.h", "cub/version.cuh"):
        (place,) = (name for name in read.split() if name.endswith(f"/{header}"))
        assert Path(place).resolve().is_relative_to(bench.prefix("cuda130"))


def test_a_program_of_thrust_and_cub_is_built_by_cmake_and_runs(bench: Bench, tmp_path: Path) -> None:
    build = bench.configure("cuda130", "cccl", tmp_path / "build", "-DCMAKE_CUDA_ARCHITECTURES=90")
    assert build.reported()["CCCL_DIR"] == str(bench.prefix("cuda130") / "cuda" / "lib" / "cmake" / "cccl")
    bench.compile("cuda130", build)
    assert check([build.folder / "sort"], tmp_path) == "1 2 3\n"
