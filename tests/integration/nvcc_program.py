"""A program that nvcc alone links to cuBLAS: which cuBLAS it finds when it is started by its path, with no variable."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.integration.bench import check

__all__ = ["check_cmake_links_the_same", "check_program"]

SOURCE = """\
#include <cublas_v2.h>
#include <dlfcn.h>
#include <cstdio>
__global__ void kernel() {}
int main() {
    Dl_info from;
    dladdr(reinterpret_cast<void *>(&cublasGetCudartVersion), &from);
    std::printf("%zu %s\\n", cublasGetCudartVersion(), from.dli_fname);
}
"""
OLDER = """\
unsigned long cublasGetCudartVersion(void) { return 9000; }
"""
CONTROL = """\
unsigned long cublasGetCudartVersion(void);
int printf(const char *, ...);
int main(void) { printf("%lu\\n", cublasGetCudartVersion()); return 0; }
"""
PROJECT = """\
cmake_minimum_required(VERSION 3.27)
project(linked LANGUAGES CXX CUDA)
find_package(CUDAToolkit REQUIRED)
add_executable(linked blas.cu)
target_link_libraries(linked PRIVATE CUDA::cublas ${CMAKE_DL_LIBS})
add_library(part SHARED part.cu)
target_link_libraries(part PRIVATE CUDA::cublas)
"""
PART = '#include <cublas_v2.h>\nextern "C" int part(int *v) { return cublasGetProperty(MAJOR_VERSION, v); }\n'

Run = Callable[..., str]
"""Runs a program in an environment, which must succeed, and returns all that it printed."""


def by_path(program: Path) -> str:
    """Start a program by its path, outside any environment."""
    bare = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": ""}
    done = subprocess.run([program], env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


def on_a_system_with(folder: Path, program: Path) -> str:
    """Start a program by its path where the cache of the loader, as it alone sees it, has the libraries of a folder."""
    (folder / "ld.so.conf").write_text(f"{folder}\ninclude /etc/ld.so.conf\n")
    cache = folder / "ld.so.cache"
    check(["/sbin/ldconfig", "-X", "-f", folder / "ld.so.conf", "-C", cache], folder)
    mounted = f'mount --bind "{cache}" /etc/ld.so.cache && exec "{program}"'
    return check(["unshare", "--map-root-user", "--mount", "env", "LD_LIBRARY_PATH=", "sh", "-c", mounted], folder)


def check_program(run: Run, prefix: Path, folder: Path, name: str) -> None:
    """Check that a program which nvcc alone links runs with the environment's cuBLAS.

    Args:
        run: Runs a program in the environment.
        prefix: The environment.
        folder: Where to work.
        name: The name of its cuBLAS for the loader.
    """
    folder.mkdir()
    source, program = folder / "blas.cu", folder / "blas"
    source.write_text(SOURCE)
    run("nvcc", source, "-lcublas", "-ldl", "-o", program)
    said = by_path(program)
    # The stub of cuBLASLt that stands for it in one toolkit prints a line of its own, and answers with 0.
    place = said.splitlines()[-1].partition(" ")[2]
    assert Path(place).is_relative_to(prefix), place
    loaded = check(["env", "LD_LIBRARY_PATH=", "ldd", program], folder)
    of_cuda = dict(re.findall(r"^\s*(lib(?:cu|nv)\S+) => (\S+)", loaded, re.MULTILINE))
    assert any(name.startswith("libcublasLt") for name in of_cuda), loaded  # which cuBLAS itself loads
    assert [path for path in of_cuda.values() if not Path(path).is_relative_to(prefix)] == []
    dynamic = check(["readelf", "--dynamic", program], folder)
    assert re.findall(r"NEEDED.*\[(libcublas\.so[^\]]*)\]", dynamic) == [name]

    older = folder / "system"
    older.mkdir()
    for stem, text in (("older", OLDER), ("control", CONTROL)):
        (older / f"{stem}.c").write_text(text)
    check(["gcc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "older.c", "-o", name], older)
    check(["gcc", "control.c", f"./{name}", "-o", "control"], older)
    assert on_a_system_with(older, older / "control") == "9000\n"  # the older one is what the system has
    assert on_a_system_with(older, program) == said != "9000\n"


def check_cmake_links_the_same(run: Run, folder: Path, *options: str) -> None:
    """Check that what CMake links has the same dynamic section with and without what tenv adds for nvcc."""
    folder.mkdir()
    for name, text in (("CMakeLists.txt", PROJECT), ("blas.cu", SOURCE), ("part.cu", PART)):
        (folder / name).write_text(text)
    assert "-rpath" in run("sh", "-c", "echo $NVCC_APPEND_FLAGS")
    sections = []
    for name, before in (("with", []), ("without", ["env", "-u", "NVCC_APPEND_FLAGS"])):
        build = folder / name
        run(*before, "cmake", "-S", folder, "-B", build, "-DCMAKE_CUDA_ARCHITECTURES=80", *options)
        run(*before, "cmake", "--build", build)
        texts = [check(["readelf", "--dynamic", build / file], folder) for file in ("linked", "libpart.so")]
        sections.append([re.findall(r"\((NEEDED|RPATH|RUNPATH|SONAME)\) +(.*)", text) for text in texts])
    assert sections[0] == sections[1]
    assert any("libcublas" in value for _, value in sections[0][0])
