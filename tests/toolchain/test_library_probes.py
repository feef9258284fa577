"""The probes for the libraries of a toolchain: each one passes on what is whole, and fails when one thing is broken."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tenv.toolchain.discover import Toolchain
from tenv.toolchain.smoke_tests import Outcome, Probe, library_probes, run
from tests.support.rarely import first_fast

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")

HEADERS = {
    "cudnn.h": '#include <stddef.h>\n#define CUDNN_VERSION 92400\nextern "C" size_t cudnnGetVersion();\n',
    "cusparseLt.h": "#define CUSPARSELT_VER_MAJOR 0\n#define CUSPARSELT_VER_MINOR 8\n"
    "enum libraryPropertyType { MAJOR_VERSION, MINOR_VERSION };\n"
    'extern "C" int cusparseLtGetProperty(libraryPropertyType, int *);\n',
    "nccl.h": '#define NCCL_VERSION_CODE 23007\nextern "C" int ncclGetVersion(int *);\n',
    "magma_v2.h": "#define MAGMA_VERSION_MAJOR 2\ntypedef int magma_int_t;\n"
    'extern "C" int magma_init();\nextern "C" void magma_version(int *, int *, int *);\n',
}
SOURCES = {
    "cudnn": "unsigned long cudnnGetVersion(void) { return 92400; }",
    "cusparseLt": "int cusparseLtGetProperty(int what, int *x) { *x = what ? 8 : 0; return 0; }",
    "nccl": "extern int cuInit(unsigned); int ncclGetVersion(int *x) { if (*x) cuInit(0); *x = 23007; return 0; }",
}
TORCH = """\
import os
def load_inline(name, cpp_sources, functions, build_directory):
    assert "twice" in cpp_sources and functions == ["twice"] and os.path.isdir(build_directory)
    class Module:
        def twice(self, x): return [2 * one for one in x] if not os.environ.get("BROKEN") else x
    class Twice(Module):
        def twice(self, x):
            import torch
            return torch.Tensor(super().twice(x))
    return Twice()
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prefix with small libraries that answer as the real ones do."""
    prefix = tmp_path_factory.mktemp("compiled") / "prefix"
    for name in ("include", "lib", "bin", "site/torch/utils"):
        (prefix / name).mkdir(parents=True)
    for name, text in HEADERS.items():
        (prefix / "include" / name).write_text(text)
    for name, text in SOURCES.items():
        compile_library(prefix, name, text)
    (prefix / "magma.c").write_text(
        "extern int cublasCreate(void); int magma_init(void) { return cublasCreate(); }\n"
        "void magma_version(int *a, int *b, int *c) { *a = 2; }\n"
    )
    subprocess.run(["gcc", "-c", "-o", str(prefix / "magma.o"), str(prefix / "magma.c")], check=True)
    subprocess.run(["ar", "rc", str(prefix / "lib" / "libmagma.a"), str(prefix / "magma.o")], check=True)
    nvcc = prefix / "bin" / "nvcc"
    nvcc.write_text('#!/bin/sh\ncase "$*" in *sm_90a*) echo "ptxas fatal: no sm_90a" >&2; exit 1;; esac\n')
    nvcc.chmod(0o755)
    shutil.copy(nvcc, prefix / "bin" / "ninja")
    site = prefix / "site"
    (site / "setuptools.py").write_text("")
    (site / "torch" / "__init__.py").write_text(
        "class Tensor(list):\n    def tolist(self): return list(self)\ndef ones(n): return Tensor([1.0] * n)\n"
    )
    (site / "torch" / "utils" / "__init__.py").write_text("")
    (site / "torch" / "utils" / "cpp_extension.py").write_text(TORCH)
    return prefix


@pytest.fixture
def whole(compiled: Path, tmp_path: Path) -> Toolchain:
    """A copy of the prefix, which a test may break."""
    prefix = shutil.copytree(compiled, tmp_path / "prefix")
    site, nvcc = prefix / "site", prefix / "bin" / "nvcc"
    return Toolchain(
        prefix, Path(sys.executable), site, nvcc=nvcc, cudnn=prefix, cusparselt=prefix, nccl=prefix, magma=prefix
    )


def compile_library(prefix: Path, name: str, text: str) -> None:
    source = prefix / f"{name}.c"
    source.write_text(text)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(prefix / "lib" / f"lib{name}.so"), str(source)], check=True)


def probes(toolchain: Toolchain, **environ: str) -> dict[str, Probe]:
    return {probe.name: probe for probe in library_probes(toolchain, environ, ("g++",))}


def tried(toolchain: Toolchain, name: str, **environ: str) -> Outcome:
    path = f"{toolchain.prefix / 'bin'}:{os.environ['PATH']}"
    around = {**os.environ, "PYTHONPATH": str(toolchain.site_packages), "PATH": path, **environ}
    return run(probes(toolchain, **environ)[name], around)


NAMES = ("openmp", "cudnn", "cusparselt", "nccl", "magma", "torch-extension")


@pytest.mark.parametrize("name", first_fast(NAMES, 3))
def test_each_passes_on_what_is_whole(whole: Toolchain, name: str) -> None:
    outcome = tried(whole, name)
    assert outcome.ok, outcome.log


def test_libraries_are_not_compiled_with_headers_of_cuda_that_lack_those_of_nvcc(whole: Toolchain) -> None:
    runtime = replace(whole, cuda=whole.prefix)
    header = whole.prefix / "include" / "cuda_runtime.h"
    header.write_text('#include "crt/host_config.h"\n')
    assert {"cudnn", "cusparselt", "nccl"}.isdisjoint(probes(runtime))
    (header.parent / "crt").mkdir()
    (header.parent / "crt" / "host_config.h").touch()
    assert {"cudnn", "cusparselt", "nccl"} <= probes(runtime).keys()


def another_header(toolchain: Toolchain) -> None:
    for name in HEADERS:
        header = toolchain.prefix / "include" / name
        text = header.read_text()
        for old, new in (("92400", "91900"), ("_MINOR 8", "_MINOR 7"), ("23007", "22803"), ("_MAJOR 2", "_MAJOR Q")):
            text = text.replace(old, new)
        header.write_text(text)


def library_gone(toolchain: Toolchain) -> None:
    for file in (toolchain.prefix / "lib").iterdir():
        file.unlink()


def header_gone(toolchain: Toolchain) -> None:
    for name in HEADERS:
        (toolchain.prefix / "include" / name).unlink()


def function_gone(toolchain: Toolchain) -> None:
    for name in SOURCES:
        compile_library(toolchain.prefix, name, "int other(void) { return 0; }")


BROKEN = [
    (name, broken)
    for name in ("cudnn", "cusparselt", "nccl", "magma")
    for broken in (another_header, library_gone, header_gone, function_gone)
    if (name, broken) != ("magma", function_gone)
]


@pytest.mark.parametrize(
    ("name", "broken"), first_fast(BROKEN, 6, several=True), ids=lambda one: getattr(one, "__name__", one)
)
def test_each_fails_when_one_thing_is_broken(whole: Toolchain, name: str, broken: Callable[[Toolchain], None]) -> None:
    broken(whole)
    outcome = tried(whole, name)
    assert not outcome.ok
    assert "failed with status" in outcome.log


def test_the_versions_that_differ_are_in_the_log(whole: Toolchain) -> None:
    another_header(whole)
    assert "header 91900, library 92400" in tried(whole, "cudnn").log


def test_openmp_fails_without_its_library(whole: Toolchain, tmp_path: Path) -> None:
    fake = tmp_path / "g++"
    fake.write_text('#!/bin/sh\ncase "$*" in *-fopenmp*) echo "cannot find -lgomp" >&2; exit 1;; esac\n')
    fake.chmod(0o755)
    [probe] = [one for one in library_probes(whole, {}, (str(fake),)) if one.name == "openmp"]
    outcome = run(probe, os.environ)
    assert (outcome.ok, "cannot find -lgomp" in outcome.log) == (False, True)
    assert "openmp" not in {one.name for one in library_probes(whole, {}, ("/usr/bin/clang++-18", "-m64"))}


def test_an_extension_that_computes_something_else(whole: Toolchain) -> None:
    outcome = tried(whole, "torch-extension", BROKEN="1")
    assert (outcome.ok, "AssertionError" in outcome.log) == (False, True)
    shutil.rmtree(whole.site_packages / "torch")
    assert "torch-extension" not in probes(whole)
    (whole.site_packages / "torch-2.9.0.dist-info").mkdir()  # of an editable install
    assert "torch-extension" in probes(whole)


def test_an_extension_is_not_tried_where_torch_has_no_tools_for_one(whole: Toolchain) -> None:
    outcome = tried(whole, "torch-extension", PATH="/nowhere", BROKEN="1")
    assert outcome.ok
    assert outcome.notes == ("an extension of torch is not tried: it takes ninja, and nothing here has it",)


def test_each_architecture_is_a_probe(whole: Toolchain) -> None:
    archs = {"TORCH_CUDA_ARCH_LIST": "8.0;9.0a 10.0+PTX,Ampere;8.0"}
    found = probes(whole, **archs)
    assert [name for name in found if name.startswith("nvcc-")] == ["nvcc-80", "nvcc-90a", "nvcc-100"]
    assert "arch=compute_100,code=[sm_100,compute_100]" in found["nvcc-100"].commands[0]
    assert tried(whole, "nvcc-80", **archs).ok
    outcome = tried(whole, "nvcc-90a", **archs)
    assert (outcome.ok, "ptxas fatal: no sm_90a" in outcome.log) == (False, True)


def test_what_a_prefix_lacks_is_not_asked(whole: Toolchain) -> None:
    bare = replace(whole, nvcc=None, cudnn=None, cusparselt=None, nccl=None, magma=None)
    shutil.rmtree(whole.site_packages / "torch")
    assert list(probes(bare, TORCH_CUDA_ARCH_LIST="8.0")) == ["openmp"]
