"""Short programs that test a toolchain: each is compiled and run in its own folder."""

import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.toolchain.discover import Toolchain
from tenv.toolchain.library_probes import library_probes
from tenv.toolchain.probe import Probe

__all__ = ["Outcome", "Probe", "plan", "run", "toolkit_probe"]

_SECONDS = 180.0
"""Seconds for one command; nvcc takes some seconds on a slow disk."""

_HELLO = (
    '#include <iostream>\n#include <vector>\nint main() { std::vector<int> v(3, 14); std::cout << v[2] << "\\n"; }\n'
)

_IMPORTS = """\
import subprocess, sys
bad = []
for name in sys.argv[1:]:  # each in a process of its own, as setuptools must be imported before what distutils brings
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", "import " + name], capture_output=True, text=True)
    if done.returncode:
        bad.append(name + ": " + (done.stderr.strip().splitlines() or ["status %d" % done.returncode])[-1])
sys.exit("\\n".join(bad) or 0)
"""

_EXTENSION = """\
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *none) { return PyLong_FromLong(42); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "probe", "", -1, methods};
PyMODINIT_FUNC PyInit_probe(void) { return PyModule_Create(&module); }
"""

_BUILD = """\
import subprocess, sys, sysconfig
out = "probe" + sysconfig.get_config_var("EXT_SUFFIX")
include = sysconfig.get_path("include")
subprocess.run([*sys.argv[1:], "-x", "c", "-shared", "-fPIC", "-I" + include, "probe.c", "-o", out], check=True)
sys.path.insert(0, ".")
import probe
assert probe.answer() == 42
"""

_KERNEL = """\
#include <cstdio>
__global__ void add(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
int main() {
    const int n = 256;
    float *x, *y;
    if (cudaMallocManaged(&x, n * sizeof(float)) || cudaMallocManaged(&y, n * sizeof(float))) return 2;
    for (int i = 0; i < n; ++i) { x[i] = i; y[i] = 1; }
    add<<<1, n>>>(n, 2.0f, x, y);
    cudaError_t error = cudaDeviceSynchronize();
    if (error) { std::printf("%s\\n", cudaGetErrorString(error)); return 3; }
    return y[10] == 21.0f ? 0 : 4;
}
"""

_CMAKE = """\
cmake_minimum_required(VERSION 3.5...4.0)
project(probe CXX)
add_executable(probe probe.cpp)
"""

_TOOLKIT = """\
cmake_minimum_required(VERSION 3.18...4.0)
project(probe CXX)
find_package(CUDAToolkit REQUIRED)
foreach(part IN ITEMS {parts})
  if(NOT TARGET CUDA::${{part}})
    list(APPEND missing CUDA::${{part}})
  endif()
endforeach()
if(missing)
  list(JOIN missing ", " missing)
  message(FATAL_ERROR "FindCUDAToolkit finds no ${{missing}} with ${{CUDAToolkit_BIN_DIR}}")
endif()
"""

_DGEMM = """\
#include <mkl.h>
int main() {
    double a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, c[4];
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 2, 1.0, a, 2, b, 2, 0.0, c, 2);
    return c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50 ? 0 : 1;
}
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a probe.

    Attributes:
        name: The probe's name.
        ok: Whether every command succeeded.
        seconds: Its duration.
        log: The commands with their output.
    """

    name: str
    ok: bool
    seconds: float
    log: str


def plan(
    toolchain: Toolchain, environ: Mapping[str, str], modules: Sequence[str], gpu: bool, parts: Sequence[str] = ()
) -> Iterator[Probe]:
    """Yield the probes for a toolchain.

    Args:
        toolchain: The tools of the prefix.
        environ: The environment variables with the toolchain active.
        modules: The Python modules that must be importable.
        gpu: Whether the host has a GPU, so that compiled CUDA programs can be run.
        parts: What CMake's FindCUDAToolkit must find of the toolkit, without ``CUDA::``.
    """
    python = str(toolchain.python)
    if toolchain.python.exists():
        yield Probe("python", {"imports.py": _IMPORTS}, ((python, "imports.py", *modules),))
    if sys.platform == "win32":  # its compilers need a developer prompt
        return
    compiler = _compiler(environ)
    if not compiler:
        yield Probe("c++", lacks="PATH has no C++ compiler (g++, c++ or clang++), and CXX is not set to one")
        return
    program = ("./probe",)
    yield Probe("c++", {"probe.cpp": _HELLO}, ((*compiler, "-O1", "-o", "probe", "probe.cpp"), program))
    if toolchain.python.exists():
        files = {"probe.c": _EXTENSION, "build.py": _BUILD}
        yield Probe("python-extension", files, ((python, "build.py", *compiler),))
    if toolchain.nvcc:
        build = (str(toolchain.nvcc), "-o", "probe", "probe.cu")
        yield Probe("nvcc", {"probe.cu": _KERNEL}, (build, program) if gpu else (build,))
    if found := toolkit_probe(toolchain, parts):
        yield found
    if toolchain.cmake:
        yield _cmake(toolchain.cmake, toolchain.ninja)
    if toolchain.mkl:
        yield _mkl(toolchain.mkl, compiler)
    yield from library_probes(toolchain, environ, compiler)


def toolkit_probe(toolchain: Toolchain, parts: Sequence[str]) -> Probe | None:
    """Return a short CMake project that searches for the parts of the toolkit; None without CMake or a toolkit.

    Args:
        toolchain: The tools of the prefix.
        parts: What FindCUDAToolkit must find, without ``CUDA::``.
    """
    if not (toolchain.cmake and toolchain.nvcc and parts):
        return None
    command = (str(toolchain.cmake), "-S", ".", "-B", "build", *_generator(toolchain.ninja))
    return Probe("toolkit", {"CMakeLists.txt": _TOOLKIT.format(parts=" ".join(parts))}, (command,))


def _generator(ninja: Path | None) -> tuple[str, ...]:
    return ("-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}") if ninja else ()


def _compiler(environ: Mapping[str, str]) -> tuple[str, ...]:
    words = shlex.split(environ.get("CXX", ""))
    if words:
        return tuple(words)
    found = (process.find(name, environ.get("PATH")) for name in ("g++", "c++", "clang++"))
    return next(((path,) for path in found if path), ())


def _cmake(cmake: Path, ninja: Path | None) -> Probe:
    commands = (
        (str(cmake), "-S", ".", "-B", "build", *_generator(ninja)),
        (str(cmake), "--build", "build"),
        ("build/probe",),
    )
    return Probe("cmake" if ninja is None else "cmake-ninja", {"CMakeLists.txt": _CMAKE, "probe.cpp": _HELLO}, commands)


def _mkl(root: Path, compiler: tuple[str, ...]) -> Probe:
    names = ("mkl_intel_lp64", "mkl_sequential", "mkl_core")
    libraries = root / "lib"
    if (libraries / "libmkl_core.a").is_file():
        linked = ["-Wl,--start-group", *(f"{libraries}/lib{name}.a" for name in names), "-Wl,--end-group"]
    else:
        linked = [f"-L{libraries}", f"-Wl,-rpath,{libraries}", *(f"-l{name}" for name in names)]
    build = (*compiler, f"-I{root / 'include'}", "-o", "probe", "probe.cpp", *linked, "-lpthread", "-lm", "-ldl")
    return Probe("mkl", {"probe.cpp": _DGEMM}, (build, ("./probe",)))


def run(probe: Probe, environ: Mapping[str, str], limit: float = _SECONDS, *, bound: bool = True) -> Outcome:
    """Run a probe in a new folder with a time limit for each command; `bound` is passed to `process.run`."""
    start = time.monotonic()
    log = [probe.lacks] if probe.lacks else []
    ok = not probe.lacks
    with tempfile.TemporaryDirectory(prefix="tenv-probe-") as name:
        folder = Path(name)
        for file, text in probe.files.items():
            (folder / file).write_text(text)
        for command in probe.commands:
            ok, said = _step(command, environ, folder, limit, bound=bound)
            log.append(said)
            if not ok:
                break
    return Outcome(probe.name, ok, round(time.monotonic() - start, 3), "\n".join(log))


def _step(
    command: Sequence[str], environ: Mapping[str, str], folder: Path, limit: float, *, bound: bool
) -> tuple[bool, str]:
    words = [str(folder / command[0]) if command[0].startswith(("./", "build/")) else command[0], *command[1:]]
    done = process.run(words, environment=environ, folder=folder, timeout=limit, bound=bound)
    shown = f"$ {shlex.join(command)}"
    if isinstance(done, process.Missing):
        return False, f"{shown}\n{done.reason}"
    said = "\n".join(text for text in (shown, done.stdout.strip(), done.stderr.strip()) if text)
    if done.status:
        said += f"\nfailed with status {done.status}"
    return not done.status, said
