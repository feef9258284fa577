"""The toolkit folder, as CMake's own FindCUDAToolkit takes it."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.bench import Bench, Build, check
from tests.integration.nvcc_program import check_cmake_links_the_same, check_program

pytestmark = pytest.mark.real

_NO_GPU = {"cudaErrorInsufficientDriver", "cudaErrorNoDevice"}


@pytest.fixture(scope="module")
def toolkit(bench: Bench) -> Build:
    """A project that uses every library, built."""
    build = bench.configure("cuda130", "toolkit", bench.folder / "toolkit")
    bench.compile("cuda130", build)
    return build


def answers(talk: str) -> dict[str, str]:
    """Return what the program says, one answer a line."""
    return dict(re.findall(r"^([\w -]+)=(.*)$", talk, re.MULTILINE))


def cut(version: str, parts: int = 3) -> str:
    return ".".join(version.split(".")[:parts])


def test_cmake_and_ninja_are_the_environments(bench: Bench) -> None:
    prefix = bench.prefix("cuda130")
    for name in ("cmake", "ninja", "nvcc", "python"):
        found = Path(bench.run("cuda130", "sh", "-c", f"command -v {name}").strip())
        assert found.is_relative_to(prefix)
    assert bench.run("cuda130", "printenv", "TENV_TARGET") == "cuda130\n"


def test_everything_is_found_in_the_environment(bench: Bench, toolkit: Build) -> None:
    cuda = bench.prefix("cuda130") / "cuda"
    cache = toolkit.cache()
    assert f"Found CUDAToolkit: {cuda / 'include'}" in toolkit.talk
    assert cache["CMAKE_CUDA_COMPILER"] == str(cuda / "bin" / "nvcc")
    assert cache["CMAKE_MAKE_PROGRAM"] == str(bench.prefix("cuda130") / "bin" / "ninja")
    assert cache["CUDA_cudart_LIBRARY"] == str(cuda / "lib" / "libcudart.so")
    assert bench.strange_toolkits(toolkit) == []


def test_a_program_runs_with_the_libraries_of_the_environment(bench: Bench, toolkit: Build) -> None:
    cuda = bench.prefix("cuda130") / "cuda"
    found = bench.libraries(toolkit.folder / "versions")
    ours = {name: path for name, path in found.items() if re.match(r"lib(cu|nv|nccl)", name)}
    assert {"libcudart.so.13", "libcublas.so.13", "libcudnn.so.9", "libcusparseLt.so.0", "libnccl.so.2"} <= ours.keys()
    assert {name for name, path in ours.items() if not Path(path).is_relative_to(cuda)} == set()
    assert "libcuda.so.1" not in found


def test_every_library_says_the_version_of_its_wheel(bench: Bench, toolkit: Build) -> None:
    wheels = bench.packages("cuda130")
    said = answers(bench.run("cuda130", toolkit.folder / "versions", "."))
    for name in ("cublas", "cusparse", "cusolver", "cufft", "curand"):
        assert said[name] == cut(wheels[f"nvidia_{name}"]), name
    assert said["cusparselt"] == cut(wheels["nvidia_cusparselt_cu13"])
    assert said["nvrtc"] == cut(wheels["nvidia_cuda_nvrtc"], 2) == "13.0"
    assert said["nvjitlink"] == cut(wheels["nvidia_nvjitlink"], 2) == "13.0"
    assert said["cudart"] == "13000"
    major, minor, patch = map(int, wheels["nvidia_cudnn_cu13"].split(".")[:3])
    assert said["cudnn"] == str(major * 10000 + minor * 100 + patch)
    major, minor, patch = map(int, wheels["nvidia_nccl_cu13"].split("."))
    assert said["nccl"] == str(major * 10000 + minor * 100 + patch)
    assert int(said["cupti"]) > 0


def test_a_program_gets_as_far_as_the_driver(bench: Bench, toolkit: Build) -> None:
    said = answers(bench.run("cuda130", toolkit.folder / "versions", "."))
    if said["device"] == "cudaSuccess":
        assert said["kernel"] == "right"
    else:
        assert said["device"] in _NO_GPU


def test_kernels_compile_at_run_time(bench: Bench, toolkit: Build) -> None:
    # NVRTC opens its second library by name alone: the loader has to be told where, as with NVIDIA's own installer.
    cuda = bench.prefix("cuda130") / "cuda"
    loader = f"LD_LIBRARY_PATH={cuda / 'lib64'}"
    talk = bench.run("cuda130", "env", loader, toolkit.folder / "versions", cuda / "include")
    assert answers(talk)["run-time compilation"] == "NVRTC_SUCCESS"


def test_the_driver_is_linked_and_not_the_stub(bench: Bench) -> None:
    build = bench.configure("cuda130", "driver", bench.folder / "driver")
    bench.compile("cuda130", build)
    cuda = bench.prefix("cuda130") / "cuda"
    assert Path(build.cache()["CUDA_cuda_driver_LIBRARY"]).resolve() == cuda / "lib" / "stubs" / "libcuda.so"
    assert bench.strange_toolkits(build) == []
    # It is not run: whether there is a libcuda.so.1 here is the machine's affair.
    dynamic = check(["readelf", "--dynamic", build.folder / "driver"], bench.work)
    assert "Shared library: [libcuda.so.1]" in dynamic
    assert "stubs" not in dynamic


def test_another_toolkit_that_the_host_names_is_not_taken(bench: Bench, tmp_path: Path) -> None:
    cuda = bench.prefix("cuda130") / "cuda"
    decoy = tmp_path / "cuda"
    decoy.mkdir()
    for name in ("bin", "include", "lib", "lib64", "nvvm", "version.json"):
        (decoy / name).symlink_to(cuda / name)
    names = ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDAToolkit_ROOT", "CUDNN_ROOT", "CUSPARSELT_ROOT", "NCCL_ROOT")
    host = dict.fromkeys(names, str(decoy))
    host |= {"CUDACXX": f"{decoy}/bin/nvcc", "PATH": f"{decoy}/bin:{bench.environment['PATH']}"}
    misled = replace(bench, environment={**bench.environment, **host})
    for project in ("toolkit", "driver"):
        build = misled.configure("cuda130", project, tmp_path / project)
        assert [value for value in build.cache().values() if str(decoy) in value] == []


def test_a_program_that_nvcc_alone_links_runs_outside_the_environment(bench: Bench, tmp_path: Path) -> None:
    def run(*words: str | Path) -> str:
        return bench.run("cuda130", *words)

    check_program(run, bench.prefix("cuda130"), tmp_path / "alone", "libcublas.so.13")
    check_cmake_links_the_same(run, tmp_path / "cmake")
    source = tmp_path / "alone" / "blas.cu"
    run("nvcc", "-dc", source, "-o", tmp_path / "blas.o")
    run("nvcc", "-dlink", tmp_path / "blas.o", "-o", tmp_path / "linked.o")


CLANGD = Path(sys.executable).with_name("clangd")
KERNEL = """\
#include <cuda_runtime.h>
#include <cstdio>

__global__ void twice(float* values, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) {
        values[at] *= 2;
    }
}

void start(float* values, int count) {
    twice<<<1, 32>>>(values, count);
    std::printf("%s\\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
"""
PROGRAM = """\
#include <cudnn.h>
#include <cstdio>

void start(float* values, int count);

int main() {
    start(nullptr, 0);
    std::printf("%zu\\n", cudnnGetVersion());
}
"""
LISTS = """\
cmake_minimum_required(VERSION 3.24)
project(two LANGUAGES CXX CUDA)
add_executable(two main.cpp kernel.cu)
"""


def test_clangd_reads_a_source_in_cpp_and_one_in_cuda(bench: Bench) -> None:
    folder = bench.work / "two"
    folder.mkdir()
    for name, text in (("kernel.cu", KERNEL), ("main.cpp", PROGRAM), ("CMakeLists.txt", LISTS)):
        (folder / name).write_text(text)
    settings = ("-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_CUDA_ARCHITECTURES=80")
    bench.run("cuda130", "cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", *settings)
    check([sys.executable, "-m", "tenv", "export", "clangd", "cuda130"], folder, bench.environment)
    assert str(folder / "build") in (folder / ".clangd").read_text()
    for name in ("kernel.cu", "main.cpp"):
        words = [str(CLANGD), "--enable-config", f"--check={name}"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        assert (done.returncode, "All checks completed, 0 errors" in done.stderr) == (0, True), done.stderr
