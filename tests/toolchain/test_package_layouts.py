"""Where conda packages put a toolchain: made of empty files under the names that real packages have."""

import platform
import sys
from pathlib import Path

import pytest

from tenv.activation.changes import Action
from tenv.activation.variables import derive
from tenv.host.machine import current_platform, probe
from tenv.targets.manifest import Manifest
from tenv.toolchain.cuda_folder import assemble
from tenv.toolchain.discover import Toolchain, conda_components, discover

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="links and names as Linux has them")

MACHINE = platform.machine()
TARGET = {"x86_64": "x86_64-linux", "aarch64": "sbsa-linux"}[MACHINE]
HEADER = "#define CUDA_VERSION {}\n"


def fill(prefix: Path, *names: str, **texts: str) -> Path:
    """Make files; `texts` by the last part of their names."""
    for name in names:
        path = prefix / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts.get(path.name.replace(".", "_"), ""))
    return prefix


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """conda-forge: cuda-nvcc, cuda-cudart-dev, cuda-driver-dev, libcublas-dev, cudnn, libmagma, gxx_linux-64 …"""
    part = f"targets/{TARGET}"
    return fill(
        tmp_path / "env",
        *("conda-meta/cuda-version-12.6-h7480c83_3.json", "conda-meta/cuda-nvcc-12.6.85-hcdd1206_1.json"),
        *("bin/nvcc", "bin/ptxas", "bin/cmake", "bin/ninja", "bin/python", "nvvm/bin/cicc", "nvvm/libdevice/x.bc"),
        *(f"{part}/include/{name}" for name in ("cuda.h", "cuda_runtime_api.h", "cublas_v2.h")),
        *(f"{part}/lib/{name}" for name in ("libcudart.so.12", "libcudart.so", "libcudart_static.a")),
        f"{part}/lib/stubs/libcuda.so",
        *("include/cudnn.h", "lib/libcudnn.so.9", "include/magma.h", "include/magma_v2.h", "lib/libmagma.so"),
        *("include/mkl.h", "lib/libmkl_core.so", "include/nccl.h", "lib/libnccl.so"),
        *(f"bin/{MACHINE}-conda-linux-gnu-{name}" for name in ("gcc", "g++", "ar")),
        cuda_h=HEADER.format(12060),
    )


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    """nvidia/label/cuda-11.7.1, pytorch's magma-cuda117 and intel's mkl-static, without compilers."""
    return fill(
        tmp_path / "env",
        *("conda-meta/cuda-toolkit-11.7.1-0.json", "conda-meta/cuda-nvcc-11.7.99-0.json"),
        *("bin/nvcc", "nvvm/bin/cicc", "include/cuda.h", "include/cuda_runtime_api.h", "lib/libcudart.so"),
        *("lib/stubs/libcuda.so", "include/magma.h", "lib/libmagma.a", "include/mkl.h", "lib/libmkl_core.a"),
        cuda_h=HEADER.format(11070),
    )


def variables(prefix: Path, toolchain: Toolchain) -> dict[str, str]:
    changes = derive(Manifest("t", "t.toml"), toolchain, probe()).changes
    return {change.name: change.value for change in changes if change.action is not Action.UNSET}


def test_the_split_toolkit_becomes_one_folder(split: Path) -> None:
    found = assemble(split, current_platform(), [])
    root = split / "cuda"
    assert found.cuda == root
    assert str(found.cuda_version) == "12.6"
    assert found.nvcc == split / "bin" / "nvcc"
    for name in ("include/cublas_v2.h", "lib64/libcudart.so", "lib64/stubs/libcuda.so", "bin/ptxas", "nvvm/bin/cicc"):
        assert (root / name).is_file(), name
    assert (root / "lib" / "stubs" / "libcuda.so").resolve() == split / "targets" / TARGET / "lib/stubs/libcuda.so"
    links = [path for path in root.rglob("*") if path.is_symlink()]
    assert links
    assert not any(path.readlink().is_absolute() for path in links)


def test_variables_of_the_split_toolkit(split: Path) -> None:
    values = variables(split, assemble(split, current_platform(), []))
    compiler = f"{split}/bin/{MACHINE}-conda-linux-gnu-"
    assert values["CUDA_HOME"] == values["CUDAToolkit_ROOT"] == f"{split}/cuda"
    assert values["CUDACXX"] == f"{split}/bin/nvcc"
    assert values["PATH"] == f"{split}/bin"
    assert (values["CC"], values["CXX"]) == (f"{compiler}gcc", f"{compiler}g++")
    assert values["CUDAHOSTCXX"] == f"{compiler}g++"
    assert values["CUDNN_ROOT"] == values["NCCL_ROOT"] == values["MKLROOT"] == values["MAGMA_HOME"] == str(split)
    assert values["CMAKE_PREFIX_PATH"] == values["CONDA_PREFIX"] == str(split)
    assert values["_GLIBCXX_USE_CXX11_ABI"] == "1"
    assert "VIRTUAL_ENV" not in values


def test_the_flat_toolkit_is_taken_as_it_lies(flat: Path) -> None:
    found = assemble(flat, current_platform(), [])
    assert not (flat / "cuda").exists()
    assert (found.cuda, found.nvcc) == (flat, flat / "bin" / "nvcc")
    assert str(found.cuda_version) == "11.7.1"
    values = variables(flat, found)
    assert values["CUDA_HOME"] == values["MAGMA_HOME"] == values["INTEL_MKL_DIR"] == str(flat)
    assert "CC" not in values
    assert "CUDAHOSTCXX" not in values


def test_the_release_is_that_of_the_header_where_a_metapackage_says_another(flat: Path) -> None:
    (flat / "conda-meta" / "cuda-toolkit-11.7.1-0.json").rename(flat / "conda-meta" / "cuda-toolkit-12.1.1-0.json")
    assert str(discover(flat).cuda_version) == "11.7"


def test_versions_are_written_as_nvidia_does(split: Path) -> None:
    import json

    assemble(split, current_platform(), [])
    rows = json.loads((split / "cuda" / "version.json").read_text())
    assert rows["cuda"]["version"] == "12.6"
    assert rows["cuda_nvcc"]["version"] == "12.6.85"


def test_components_are_read_from_names(split: Path) -> None:
    fill(split, "conda-meta/libcublas-12.6.4.1-h5888daf_1.json", "conda-meta/magma-cuda126-2.6.1-1.json")
    assert conda_components(split) == {"cuda-version": "12.6", "cuda-nvcc": "12.6.85", "magma-cuda126": "2.6.1"}


def test_a_virtual_environment_among_conda_packages_keeps_its_name(split: Path) -> None:
    (split / "pyvenv.cfg").touch()
    values = variables(split, discover(split))
    assert values["VIRTUAL_ENV"] == values["CONDA_PREFIX"] == str(split)


def test_the_link_that_conda_makes_beside_its_python_is_not_a_second_python(split: Path) -> None:
    fill(split, "lib/python3.11/site-packages/a.py", "lib/python3.1x/x")
    (split / "lib" / "python3.9").symlink_to("python3.11")
    assert discover(split).site_packages == split / "lib" / "python3.11" / "site-packages"
