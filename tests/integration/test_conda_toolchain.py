"""A CUDA target of conda packages builds CUDA, MAGMA, MKL and Python code with nothing of the host's GCC."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.bench import PROJECTS, Bench, check, own_environment
from tests.integration.nvcc_program import check_cmake_links_the_same, check_program
from tests.integration.repack import build_channel
from tests.support.conda import Channel

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="repacks programs of amd64"),
]

MANIFEST = """\
description = "CUDA 11.8, MAGMA 2.6.2, MKL and GCC 11 of the test channel"
platforms   = ["linux-64"]
channels    = ["{channel}"]

[requirements]
cuda  = "11.8"
glibc = "2.36"

[dependencies]
python        = "3.11.*"
cmake         = "<4"
ninja         = "*"
gxx_linux-64  = "11.*"
cuda-nvcc     = "11.8.*"
libcublas-dev = "*"
libcusparse-dev = "*"
magma-cuda118 = "2.6.*"
mkl-devel     = "*"
pybind11      = "*"
setuptools    = "*"
"""
_HOST_TOOLCHAIN = re.compile(
    r"/usr/(local/)?include/|/usr/lib/gcc/|/(usr/)?lib(64)?/(x86_64-linux-gnu/)?[\w.+-]+\.(a|o|so)$"
    r"|/usr/(local/)?cuda|/usr/bin/([\w-]*-)?(gcc|g\+\+|cc|c\+\+|cc1plus|ld|ld\.bfd|as|ar|nvcc|cpp|collect2|python3?)(-\d+)?$"
)


@dataclass(frozen=True)
class Made:
    """The environment, and a way to run programs in it.

    Attributes:
        bench: The project that the target is in.
        prefix: The environment.
    """

    bench: Bench
    prefix: Path

    def run(self, *command: str | Path, folder: Path | None = None) -> str:
        """Run a program in the environment."""
        words = [sys.executable, "-m", "tenv", "run", "--prefix", self.prefix, "cuda118", "--", *command]
        return check(words, folder or self.bench.work, self.bench.environment)

    def traced(self, trace: Path, *command: str | Path, folder: Path | None = None) -> set[str]:
        """Run a program in the environment under strace, and return every file that was opened or run."""
        strace = shutil.which("strace")
        assert strace, "strace is not installed"
        self.run(strace, "-f", "-qq", "-e", "trace=open,openat,execve", "-o", trace, *command, folder=folder)
        lines = (line for line in trace.read_text(errors="replace").splitlines() if " = -1 " not in line)
        found = (re.search(r'(?:open|openat|execve)\((?:AT_FDCWD, )?"([^"]+)"', line) for line in lines)
        return {os.path.normpath(match[1]) for match in found if match}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("conda")
    work = folder / "work"
    (work / "manifests").mkdir(parents=True)
    environment = own_environment(folder) | {"RATTLER_CACHE_DIR": str(folder / "packages")}
    with Channel(build_channel()) as channel:
        (work / "manifests" / "cuda118.toml").write_text(MANIFEST.format(channel=channel.root))
        bench = Bench(folder, environment)
        said = bench.tenv("create", "cuda118")
        prefix = work / ".tenv" / "envs" / "cuda118"
        assert f"cuda118 is ready in {prefix}" in said
        yield Made(bench, prefix)
    shutil.rmtree(folder)


def strange(files: set[str]) -> list[str]:
    """Return what of a host toolchain is among files."""
    return sorted(file for file in files if _HOST_TOOLCHAIN.match(file))


def test_the_programs_are_the_environments(made: Made) -> None:
    for name in ("python", "cmake", "ninja", "nvcc"):
        assert made.run("sh", "-c", f"command -v {name}").strip() == str(made.prefix / "bin" / name)
    assert "release 11.8" in made.run("nvcc", "--version")
    assert made.run("sh", "-c", "$CXX -dumpfullversion").strip() == "11.3.0"
    assert "nothing to do" in made.bench.tenv("create", "cuda118")


def test_cuda_magma_and_mkl_are_compiled_and_linked_with_the_environment_alone(made: Made, tmp_path: Path) -> None:
    """The program of it runs, too."""
    build = tmp_path / "build"
    configured = made.traced(tmp_path / "configure", "cmake", "-S", PROJECTS / "conda", "-B", build)
    built = made.traced(tmp_path / "build.trace", "cmake", "--build", build)
    assert str(made.prefix / "bin" / "nvcc") in built
    assert any(file.endswith("/sysroot/usr/lib/gcc/x86_64-linux-gnu/11/cc1plus") for file in built)
    assert strange(built) == []
    assert strange(configured) == []
    depends = made.run("ninja", "-C", build, "-t", "deps")  # what nvcc and GCC have written down
    headers = re.findall(r"^ +(\S.*)$", depends, re.MULTILINE)
    assert len(headers) > 100
    outside = [name for name in headers if not Path(name).resolve().is_relative_to(made.prefix)]
    assert [Path(name).name for name in outside] == ["program.cu"]
    check_answers(made, build / "program")


def check_answers(made: Made, program: Path) -> None:
    """Run the program, and look at its libraries."""
    said = check([program], program.parent)
    answers = dict(re.findall(r"^(\w+)=(.*)$", said, re.MULTILINE))
    assert answers["magma"] == "2.6.2"
    assert answers["gemm"] == "1,2,3,4"
    assert answers["gcc"] == "11.3"
    if answers["device"] == "cudaSuccess":
        assert (answers["cudart"], answers["lu"]) == ("11080", "0")
    libraries = made.bench.libraries(program)
    ours = {name: Path(path) for name, path in libraries.items() if name.startswith(("libcu", "libmkl"))}
    assert {"libcudart.so.11.0", "libcublas.so.11", "libcusparse.so.11", "libmkl_core.so.2"} <= ours.keys()
    assert [path for path in ours.values() if not path.is_relative_to(made.prefix)] == []


def test_nvcc_alone_takes_the_environments_compiler(made: Made, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text('#include <cstdio>\nint main() { std::printf("%d\\n", __GNUC__); }\n')
    files = made.traced(tmp_path / "trace", "nvcc", "-o", tmp_path / "a", tmp_path / "a.cu")
    assert strange(files) == []
    assert check([tmp_path / "a"], tmp_path) == "11\n"


def test_a_program_that_nvcc_alone_links_runs_outside_the_environment(made: Made, tmp_path: Path) -> None:
    check_program(made.run, made.prefix, tmp_path / "alone", "libcublas.so.11")
    check_cmake_links_the_same(made.run, tmp_path / "cmake")


def test_an_extension_of_python_is_built_imported_and_run(made: Made, tmp_path: Path) -> None:
    shutil.copytree(PROJECTS / "extension", tmp_path / "extension")
    folder = tmp_path / "extension"
    files = made.traced(tmp_path / "trace", "python", "setup.py", "-q", "build_ext", "--inplace", folder=folder)
    assert strange(files) == []
    said = made.run("python", "-c", "import extension; print(extension.compiler(), extension.abi())", folder=folder)
    assert said.splitlines()[-1] == "11.3.0 1"  # the line before compares with the built-in lock of that name
    assert made.run("pybind11-config", "--version") == "2.13.6\n"


def test_prefixes_are_replaced_in_text_and_binary(made: Made) -> None:
    dynamic = subprocess.check_output(["readelf", "--dynamic", made.prefix / "bin" / "python3.11"], text=True)
    assert f"Library rpath: [{made.prefix}/lib]" in dynamic or f"runpath: [{made.prefix}/lib]" in dynamic
    assert f"root={made.prefix}/" in (made.prefix / "bin" / "x86_64-conda-linux-gnu-g++").read_text()


def test_what_the_scripts_set_is_explained(made: Made) -> None:
    def explain(name: str) -> str:
        return made.bench.tenv("env", "cuda118", "--explain", name)

    assert "kept: the C library's headers that the environment's compiler is made for" in explain("CONDA_BUILD_SYSROOT")
    assert "left out: PyTorch's build chooses optimisation and instruction sets itself" in explain("CXXFLAGS")
    compiler = made.prefix / "bin" / "x86_64-conda-linux-gnu-g++"
    assert f"NVCC_PREPEND_FLAGS=$NVCC_PREPEND_FLAGS -ccbin={compiler}" in explain("NVCC_PREPEND_FLAGS")
