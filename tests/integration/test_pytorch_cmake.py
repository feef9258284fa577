"""PyTorch's own CMake files, from a wheel and from a source tree: what they find is the environment's."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.bench import Bench, Build, TorchPrefix, check
from tests.integration.fatbin import Kind, images

pytestmark = pytest.mark.real


@dataclass(frozen=True, slots=True)
class Found:
    """What PyTorch's files found.

    Attributes:
        build: The configured project.
        values: What the project reported.
    """

    build: Build
    values: dict[str, str]


def find(bench: Bench, name: str, cmake: Path, modules: Path) -> Found:
    options = (f"-DPYTORCH_CMAKE={cmake}", f"-DPYTORCH_MODULES={modules}")
    build = bench.configure_as_pytorch("cuda130", "pytorch", bench.folder / f"pytorch-{name}", *options)
    return Found(build, build.reported())


@pytest.fixture(scope="module")
def by_wheel(bench: Bench, torch: TorchPrefix) -> Found:
    """What the files of a recent wheel find."""
    return find(bench, "wheel", torch.cmake, torch.cmake)


@pytest.fixture(scope="module")
def by_checkout(bench: Bench, checkout: Path) -> Found:
    """What the files of a source tree find."""
    return find(bench, "checkout", checkout, checkout / "Modules")


@pytest.fixture(params=["wheel", "checkout"])
def found(request: pytest.FixtureRequest) -> Found:
    value = request.getfixturevalue(f"by_{request.param}")
    assert isinstance(value, Found)
    return value


def test_cuda_is_the_environments(bench: Bench, found: Found) -> None:
    cuda = bench.prefix("cuda130") / "cuda"
    assert found.values["CUDA_VERSION"] == "13.0"
    assert found.values["CUDA_TOOLKIT_ROOT_DIR"] == str(cuda)
    assert found.values["CUDA_NVCC_EXECUTABLE"] == str(cuda / "bin" / "nvcc")
    assert found.values["CUDA_NVRTC_LIB"] == str(cuda / "lib" / "libnvrtc.so")
    # cuda.cmake stops with "Found two conflicting CUDA versions" where this one is not nvcc's.
    wheels = bench.packages("cuda130")
    assert found.values["CUDAToolkit_VERSION"] == wheels["nvidia_cuda_nvcc"]
    assert found.values["CUDAToolkit_LIBRARY_DIR"] == str(cuda / "lib")
    assert "PyTorch: Header version is: 13.0" in found.build.talk
    assert bench.strange_toolkits(found.build) == []


@pytest.mark.parametrize(("library", "file"), [("CUDNN", "libcudnn.so"), ("CUSPARSELT", "libcusparseLt.so")])
def test_cudnn_and_cusparselt_are_the_environments(bench: Bench, found: Found, library: str, file: str) -> None:
    cuda = bench.prefix("cuda130") / "cuda"
    wheel = bench.packages("cuda130")[f"nvidia_{library.lower()}_cu13"]
    assert found.values[f"CAFFE2_USE_{library}"] == "1"
    assert found.values[f"{library}_VERSION"] == ".".join(wheel.split(".")[:3])
    assert found.values[f"{library}_INCLUDE_PATH"] == str(cuda / "include")
    assert found.values[f"{library}_LIBRARY_PATH"] == str(cuda / "lib" / file)


def test_nccl_is_the_environments(bench: Bench, by_checkout: Found) -> None:
    cuda = bench.prefix("cuda130") / "cuda"
    # FindNCCL.cmake compiles and runs a program that compares the header with the library.
    assert by_checkout.values["NCCL_VERSION_FROM_HEADER"] == bench.packages("cuda130")["nvidia_nccl_cu13"]
    assert by_checkout.values["NCCL_INCLUDE_DIRS"] == str(cuda / "include")
    assert by_checkout.values["NCCL_LIBRARIES"] == str(cuda / "lib" / "libnccl.so")


def test_kernels_compile_with_the_flags_of_pytorch(bench: Bench, by_wheel: Found) -> None:
    bench.compile("cuda130", by_wheel.build)
    library = by_wheel.build.folder / "libkernel.so"
    section = bench.folder / "kernel.fatbin"
    check(["objcopy", f"--dump-section=.nv_fatbin={section}", library], bench.work)
    wanted = {75, 80, 86, 90, 100, 120}
    assert {number for kind, number in images(section) if kind is Kind.CUBIN} == wanted
    assert {number for kind, number in images(section) if kind is Kind.PTX} == {120}
