"""Conflicts, each named by its cause in at most ten lines, with an edit that is read from the message and works.

Records have the fields that those of conda-forge have, wheels the tags and requirements of those on the index. Threads
in public trackers are named where a conflict is that of one.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.channels import Channels, package
from tests.support.fakes import make_wheel
from tests.support.projects import Project
from tests.support.rarely import some_fast

LINUX = 'platforms = ["linux-64"]\n'
CONDA = f'{LINUX}channels = ["conda-forge"]\n'


@dataclass(frozen=True)
class Conflict:
    """A manifest without a solution.

    Attributes:
        name: What conflicts.
        manifest: The manifest.
        cause: What the message must hold.
        records: The conda records of the channel.
        wheels: The wheels of the index: name, version, tag, requirements.
        thread: The public thread that has this conflict.
    """

    name: str
    manifest: str
    cause: str
    records: Callable[[], list[dict[str, Any]]] = list
    wheels: tuple[tuple[str, str, str, tuple[str, ...]], ...] = ()
    thread: str = ""


def compilers() -> list[dict[str, Any]]:
    """cuda-nvcc 12.4 and 12.6 of conda-forge, and GCC 12 to 14."""
    gcc = [
        row
        for n in ("12.4.0", "13.4.0", "14.3.0")
        for row in (
            package("gxx_linux-64", n, "0", f"gcc_linux-64 {n}", f"gxx_impl_linux-64 {n}.*"),
            package("gcc_linux-64", n, "0", f"gcc_impl_linux-64 {n}.*"),
            package("gxx_impl_linux-64", n, "0", f"gcc_impl_linux-64 {n}"),
            package("gcc_impl_linux-64", n),
        )
    ]
    nvcc = [
        row
        for n, limit in (("12.4.131", "13"), ("12.6.85", "14"))
        for row in (
            package("cuda-nvcc", n, "0", f"cuda-nvcc_linux-64 {n}.*", "gcc_linux-64", "gxx_linux-64"),
            package("cuda-nvcc_linux-64", n, "0", f"cuda-nvcc-impl {n}.*"),
            package("cuda-nvcc-impl", n, "0", constrains=[f"gcc_impl_linux-64 >=6,<{limit}"]),
        )
    ]
    return gcc + nvcc


def numpys() -> list[dict[str, Any]]:
    """numpy 1.26 and 2.1 for the Pythons that conda-forge built them for; libffi differs by Python, too."""
    pythons = [package("python", f"3.{n}.5", "0", f"libffi {n}.*") for n in (12, 13)]
    built = [("1.26.4", 12), ("2.1.2", 12), ("2.1.2", 13)]
    packages = [
        package("numpy", v, f"py3{n}_0", f"python >=3.{n},<3.{n + 1}.0a0", f"python_abi 3.{n}.*") for v, n in built
    ]
    abi = [package("python_abi", f"3.{n}", "0", constrains=[f"python 3.{n}.*"]) for n in (12, 13)]
    return pythons + packages + abi + [package("libffi", f"{n}.0") for n in (12, 13)]


def toolkits() -> list[dict[str, Any]]:
    """cuda-nvcc 12.0 of conda-forge, and cudatoolkit 11.8, which `cuda-version` holds to its own release."""
    return [
        package("cuda-nvcc", "12.0.76", "0", "cuda-nvcc-dev_linux-64 12.0.76.*"),
        package("cuda-nvcc", "11.8.89", "0", "cuda-nvcc-dev_linux-64 11.8.89.*"),
        package("cuda-nvcc-dev_linux-64", "12.0.76", "0", "cuda-version >=12.0,<12.1.0a0"),
        package("cuda-nvcc-dev_linux-64", "11.8.89", "0", "cuda-version >=11.8,<11.9.0a0"),
        package("cuda-version", "12.0", "0", constrains=["cudatoolkit 12.0|12.0.*"]),
        package("cuda-version", "11.8", "0", constrains=["cudatoolkit 11.8|11.8.*"]),
        package("cudatoolkit", "11.8.0"),
    ]


def cudnns() -> list[dict[str, Any]]:
    """cuDNN 9.10 for CUDA 12, 8.9 for CUDA 11."""
    return [
        package("cudnn", "9.10.2.21", "0", "cuda-version >=12,<13.0a0", "libcudnn-dev 9.10.2.21"),
        package("libcudnn-dev", "9.10.2.21", "0", "cuda-version >=12,<13.0a0"),
        package("cudnn", "8.9.7.29", "0", "cuda-version >=11.0,<12.0a0"),
        *(package("cuda-version", v) for v in ("11.8", "12.0", "12.9")),
    ]


def mkls() -> list[dict[str, Any]]:
    """mkl 2019.0 and 2019.1, and numpy whose mkl_fft asks for the second."""
    return [
        package("mkl", "2019.0", "118", "intel-openmp"),
        package("mkl", "2019.1", "144", "intel-openmp"),
        package("intel-openmp", "2019.1"),
        package("mkl_fft", "1.0.6", "0", "mkl >=2019.1,<2020.0a0"),
        package("numpy", "1.15.2", "py37ha559c80_0", "mkl_fft >=1.0.4"),
        package("numpy", "1.14.0", "py37_nomkl"),
    ]


def blases() -> list[dict[str, Any]]:
    """PyTorch 1.4 and 1.5, the newer of which asks for the build of blas that has MKL."""
    return [
        package("pytorch", "1.5.0", "py3.7_0", "blas * mkl", "python >=3.7,<3.8.0a0"),
        package("pytorch", "1.4.0", "py3.7_0", "python >=3.7,<3.8.0a0"),
        package("python", "3.7.12"),
        *(package("blas", "1.0", build) for build in ("mkl", "openblas")),
    ]


def openblases() -> list[dict[str, Any]]:
    """libopenblas on both sides of 0.3.26, and a scipy that takes the older alone."""
    return [
        package("pytorch-base", "2.1.2", "0", "libopenblas >=0.3.27,<1.0a0", "scipy 1.11.*"),
        package("pytorch-base", "2.0.1", "0", "libopenblas >=0.3.20,<1.0a0", "scipy 1.10.*"),
        *(package("scipy", v, "0", "libopenblas <0.3.26") for v in ("1.10.1", "1.11.3")),
        *(package("libopenblas", v) for v in ("0.3.21", "0.3.27")),
    ]


def c_ares() -> list[dict[str, Any]]:
    """c-ares for glibc 2.28, and an older one for 2.17."""
    return [
        package("c-ares", "1.33.0", "ha66036c_0", "__glibc >=2.28,<3.0.a0"),
        package("c-ares", "1.32.3", "h4bc722e_0", "__glibc >=2.17,<3.0.a0"),
    ]


def mutexes() -> list[dict[str, Any]]:
    """PyTorch's builds for CUDA and for the CPU, and cpuonly: each asks for its own build of pytorch-mutex."""
    kinds = {"cuda": "py3.11_cuda12.1", "cpu": "py3.11_cpu"}
    return [
        *(package("pytorch", "2.2.0", build, f"pytorch-mutex 1.0 {kind}") for kind, build in kinds.items()),
        *(package("pytorch-mutex", "1.0", kind) for kind in kinds),
        package("cpuonly", "2.0", "0", "pytorch-mutex 1.0 cpu"),
    ]


def visions() -> list[dict[str, Any]]:
    """PyTorch and torchvision, which were built for no newer Python at that time."""
    old = [
        package(name, version, f"py3.{n}", f"python >=3.{n},<3.{n + 1}.0a0", *more)
        for n in (10, 11)
        for name, version, more in (("torchvision", "0.16.2", ("pytorch 2.1.2",)), ("pytorch", "2.1.2", ()))
    ]
    new = [
        package("torchvision", "0.17.2", "py3.12", "python >=3.12,<3.13.0a0", "pytorch 2.2.2"),
        package("pytorch", "2.2.2", "py3.12", "python >=3.12,<3.13.0a0"),
    ]
    return [*old, *new, *(package("python", f"3.{n}.5") for n in (10, 11, 12))]


GLIBC, OLD = "manylinux_2_27_x86_64.manylinux_2_28_x86_64", "manylinux_2_17_x86_64.manylinux2014_x86_64"

CONFLICTS = (
    Conflict(
        "nvcc-gcc",
        f'{CONDA}\n[requirements]\ncuda = "12.4"\n\n[dependencies]\ncuda-nvcc = "12.4.*"\ngxx_linux-64 = "13.*"\n',
        "cuda-nvcc-impl 12.4.131 constrains gcc_impl_linux-64 >=6,<13, and gxx_linux-64 brings gcc_impl_linux-64 13",
        compilers,
        thread="github.com/conda-forge/conda-forge-repodata-patches-feedstock/pull/632",
    ),
    Conflict(
        "numpy-python",
        f'{CONDA}\n[dependencies]\nnumpy = "1.26.*"\npython = "3.13.*"\n',
        "numpy 1.26.4 requires python >=3.12,<3.13.0a0, and python 3.13.5 is requested",
        numpys,
    ),
    Conflict(
        "nvcc-cudatoolkit",
        f'{CONDA}\n[dependencies]\ncuda-nvcc = "12.*"\ncudatoolkit = "*"\n',
        "cuda-version 12.0 constrains cudatoolkit 12.0|12.0.*, and cudatoolkit 11.8.0 is requested",
        toolkits,
        thread="github.com/mamba-org/mamba/issues/2706",
    ),
    Conflict(
        "cudnn-cuda",
        f'{CONDA}\n[dependencies]\ncuda-version = "11.8"\ncudnn = "9.10.*"\n',
        "cudnn 9.10.2.21 requires cuda-version >=12,<13.0a0, and cuda-version 11.8 is requested",
        cudnns,
    ),
    Conflict(
        "mkl-numpy",
        f'{CONDA}\n[dependencies]\nmkl = {{ version = "2019.0", build = "118" }}\nnumpy = "1.15.2"\n',
        "mkl_fft 1.0.6 requires mkl >=2019.1,<2020.0a0, and mkl 2019.0 is requested",
        mkls,
        thread="github.com/pytorch/pytorch/issues/16188",
    ),
    Conflict(
        "blas-builds",
        f'{CONDA}\n[dependencies]\nblas = {{ version = "*", build = "openblas" }}\npytorch = "1.5.*"\n',
        "pytorch 1.5.0 requires blas * mkl, and blas 1.0 openblas is requested",
        blases,
        thread="github.com/pytorch/pytorch/issues/37746",
    ),
    Conflict(
        "openblas-scipy",
        f'{CONDA}\n[dependencies]\npytorch-base = "2.1.*"\n',
        "pytorch-base 2.1.2 requires scipy 1.11.* and libopenblas >=0.3.27,<1.0a0, and scipy 1.11.3 requires "
        "libopenblas <0.3.26",
        openblases,
        thread="github.com/open-ce/open-ce/issues/1221",
    ),
    Conflict(
        "pytorch-cpuonly",
        f'{CONDA}\n[dependencies]\ncpuonly = "*"\npytorch = {{ version = "2.2.*", build = "*cuda*" }}\n',
        "cpuonly 2.0 requires pytorch-mutex 1.0 cpu, and pytorch brings pytorch-mutex 1.0 cuda",
        mutexes,
        thread="github.com/pytorch/test-infra/issues/4564",
    ),
    Conflict(
        "torchvision-python",
        f'{CONDA}\n[dependencies]\npython = "3.12.*"\npytorch = "2.1.2"\ntorchvision = "0.16.2"\n',
        "torchvision 0.16.2 requires python >=3.11,<3.12.0a0, and python 3.12.5 is requested",
        visions,
        thread="github.com/andypinxinliu/GestureLSM/issues/28",
    ),
    Conflict(
        "conda-glibc",
        f'{CONDA}\n[requirements]\nglibc = "2.17"\n\n[dependencies]\nc-ares = "1.33.*"\n',
        "packages require glibc 2.28 or newer of the host, and the manifest declares 2.17",
        c_ares,
        thread="github.com/idaholab/moose/issues/28517",
    ),
    Conflict(
        "glibc",
        f'{LINUX}python = ">=3.14,<3.15"\n\n[requirements]\nglibc = "2.17"\n\n[pypi-dependencies]\nnumpy = "*"\n',
        "numpy for Python 3.14 has wheels for glibc 2.27 and newer, and `requirements.glibc` is 2.17",
        wheels=(("numpy", "2.4.0", f"cp314-cp314-{GLIBC}", ()), ("numpy", "1.26.4", f"cp312-cp312-{OLD}", ())),
    ),
    Conflict(
        "python",
        f'{LINUX}python = ">=3.13,<3.15"\n\n[pypi-dependencies]\nonnxruntime = "1.23.2"\n',
        "onnxruntime 1.23.2 has no wheel for Python 3.14; it has wheels for Python 3.12 and 3.13",
        wheels=(
            ("onnxruntime", "1.23.2", f"cp312-cp312-{OLD}", ()),
            ("onnxruntime", "1.23.2", f"cp313-cp313-{OLD}", ()),
        ),
        thread="github.com/ndl-lab/ndlocr-lite/pull/44",
    ),
    Conflict(
        "python-all",
        f'{LINUX}python = ">=3.12,<3.14"\n\n[pypi-dependencies]\nnumpy = "1.26.0"\n',
        "numpy 1.26.0 has no wheel for Python 3.13; it has wheels for Python 3.12",
        wheels=(
            ("numpy", "1.26.0", f"cp312-cp312-{OLD}", ()),
            ("numpy", "2.4.6", f"cp312-cp312-{OLD}", ()),
            ("numpy", "2.4.6", f"cp313-cp313-{OLD}", ()),
            ("numpy", "2.5.5", f"cp313-cp313-{OLD}", ()),
        ),
    ),
    Conflict(
        "platform",
        'platforms = ["linux-64", "win-64"]\npython = ">=3.12,<3.13"\n\n'
        '[pypi-dependencies]\nsix = "*"\nnvidia-nccl-cu12 = "*"\n',
        "nvidia-nccl-cu12 has wheels for linux-64, and none for win-64",
        wheels=(
            ("six", "1.17.0", "py2.py3-none-any", ()),
            ("nvidia_nccl_cu12", "2.21.5", f"py3-none-{OLD}", ()),
        ),
    ),
    Conflict(
        "gensim-numpy",
        f'{LINUX}python = ">=3.10,<3.11"\n\n[pypi-dependencies]\ngensim = "3.8.3"\nnumpy = "1.22.0"\n',
        "gensim 3.8.3 requires numpy <=1.16.1, and numpy is requested as 1.22.0",
        wheels=(
            ("gensim", "3.8.3", "py3-none-any", ("numpy<=1.16.1",)),
            ("gensim", "4.3.0", "py3-none-any", ("numpy>=1.18",)),
            ("numpy", "1.22.0", "py3-none-any", ()),
            ("numpy", "1.16.1", "py3-none-any", ()),
        ),
        thread="github.com/astral-sh/uv/issues/9283",
    ),
    Conflict(
        "numba-numpy",
        f'{LINUX}python = ">=3.12,<3.13"\n\n[pypi-dependencies]\nnumba = "0.60.0"\nnumpy = ">=2.1"\n',
        "numba 0.60.0 requires numpy <2.1,>=1.22, and numpy is requested as >=2.1",
        wheels=(
            ("numba", "0.60.0", f"cp312-cp312-{OLD}", ("numpy>=1.22,<2.1",)),
            ("numba", "0.61.0", f"cp312-cp312-{OLD}", ("numpy>=1.24,<2.2",)),
            ("numpy", "2.1.3", f"cp312-cp312-{OLD}", ()),
            ("numpy", "2.0.2", f"cp312-cp312-{OLD}", ()),
        ),
        thread="github.com/numba/numba/issues/9708",
    ),
    Conflict(
        "pandas-numpy",
        f'{LINUX}python = ">=3.10,<3.11"\n\n[pypi-dependencies]\nnumpy = ">=1.24.4,<1.25"\npandas = ">=2.2.3"\n',
        "pandas 2.2.3 requires numpy >=1.26.0, and numpy is requested as >=1.24.4,<1.25",
        wheels=(
            ("pandas", "2.2.3", "py3-none-any", ("numpy>=1.26.0",)),
            ("pandas", "2.0.0", "py3-none-any", ("numpy>=1.20",)),
            ("numpy", "1.24.4", "py3-none-any", ()),
            ("numpy", "1.26.4", "py3-none-any", ()),
        ),
        thread="github.com/xlang-ai/OSWorld/issues/137",
    ),
    Conflict(
        "torch-cudnn",
        f'{LINUX}python = ">=3.11,<3.12"\n\n[pypi-dependencies]\nsix = "*"\ntorch = "2.6.0"\n',
        "torch 2.6.0 requires nvidia-cudnn-cu12: no release of nvidia-cudnn-cu12 is ==9.1.0.70; the newest with a "
        "wheel is 9.5.1.17",
        wheels=(
            ("torch", "2.6.0", "py3-none-any", ("nvidia-cudnn-cu12==9.1.0.70",)),
            ("torch", "2.7.0", "py3-none-any", ("nvidia-cudnn-cu12==9.5.1.17",)),
            ("nvidia_cudnn_cu12", "9.5.1.17", f"py3-none-{OLD}", ()),
            ("six", "1.17.0", "py2.py3-none-any", ()),
        ),
        thread="github.com/pytorch/pytorch/issues/193491",
    ),
    Conflict(
        "deep-wheel",
        f'{LINUX}python = ">=3.13,<3.14"\n\n[pypi-dependencies]\nnumba = "*"\nsix = "*"\n',
        "numba 0.60.0 requires llvmlite: llvmlite ==0.43.0 has no wheel for Python 3.13; it has wheels for Python 3.12",
        wheels=(
            ("numba", "0.60.0", "py3-none-any", ("llvmlite==0.43.0",)),
            ("llvmlite", "0.43.0", f"cp312-cp312-{OLD}", ()),
            ("six", "1.17.0", "py2.py3-none-any", ()),
        ),
    ),
)


def apply(hint: str, manifest: str) -> str:
    """Return a manifest with the first edit of a hint."""
    if moved := re.match(r"move (\S+) to (\[\S+\])", hint):
        line = next(row for row in manifest.splitlines() if row.startswith(moved[1]))
        return manifest.replace(f"{line}\n", "") + f"\n{moved[2]}\n{line}\n"
    key, value = re.search(r'([\w.-]+) = ("[^"]*"|\{[^}]*\})', hint).groups()  # type: ignore[union-attr]
    changed, count = re.subn(rf"(?m)^{re.escape(key)} = .*$", f"{key} = {value}", manifest)
    assert count == 1, (hint, manifest)
    return changed


SAME = ("gensim-numpy", "numba-numpy", "torch-cudnn", "cudnn-cuda", "torchvision-python")
"""Conflicts of the kinds of `pandas-numpy`, `deep-wheel`, `nvcc-cudatoolkit` and `numpy-python`."""


@pytest.mark.parametrize(
    "conflict",
    some_fast(CONFLICTS, [one for one in CONFLICTS if one.name not in SAME]),
    ids=lambda conflict: conflict.name,
)
def test_a_conflict_is_named_by_its_cause_and_its_edit_works(
    conflict: Conflict, project: Project, channels: Channels
) -> None:
    channels.add("conda-forge", *conflict.records())
    for name, version, tag, requires in conflict.wheels:
        make_wheel(project.index.folder, name, version, tag=tag, requires=requires)
    project.manifest.write_text(conflict.manifest)
    said = project.fails(5, "no-solution", "lock", "tiny").partition("searching for the conflict …\n")[2]
    assert conflict.cause in said
    assert len(said.splitlines()) <= 10
    project.manifest.write_text(apply(said.partition("hint: ")[2], conflict.manifest))
    project.ok("lock", "tiny")


def test_five_conflicts_are_from_public_threads() -> None:
    assert len([one for one in CONFLICTS if one.thread]) >= 5
    assert len(CONFLICTS) >= 10


@pytest.mark.long
def test_uv_s_own_words_are_for_those_who_ask(project: Project, tmp_path: Path) -> None:
    make_wheel(project.index.folder, "numpy", "1.26.4", tag=f"cp312-cp312-{OLD}")
    project.manifest.write_text(f'{LINUX}python = ">=3.14,<3.15"\n\n[pypi-dependencies]\nnumpy = "*"\n')
    assert "No solution found" not in project.fails(5, "no-solution", "lock", "tiny")
    assert "No solution found" in project.fails(5, "no-solution", "lock", "tiny", "--verbose")
