"""Short programs that test a toolchain and its libraries: each is compiled and run in its own folder.

Those of the libraries call functions that return a version, and compare it with the header. None of them needs a driver
or a GPU.
"""

import re
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.missing import ReasonKind
from tenv.core.names import infos_of
from tenv.toolchain.discover import Toolchain

_SECONDS = 180.0
"""Seconds for one command; nvcc takes some seconds on a slow disk."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A short program."""

    name: str
    """Its subject, in one word."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Its files."""
    commands: tuple[tuple[str, ...], ...] = ()
    """The commands to run in the folder of the files, in order; each must succeed."""
    lacks: str = ""
    """The missing requirement of the program, or an empty text."""
    seconds: float = _SECONDS
    """The seconds for one command."""


_IMPORT_SECONDS = 20.0
"""More seconds for each imported module: one that imports torch takes ten on a busy machine."""

_EXTENSION_SECONDS = 600.0
"""Seconds for an extension: torch's headers take the compiler a minute, and several on a busy machine."""

_HELLO = (
    '#include <iostream>\n#include <vector>\nint main() { std::vector<int> v(3, 14); std::cout << v[2] << "\\n"; }\n'
)

_NOTE = "note: "

_IMPORTS = """\
import re, subprocess, sys
from importlib import metadata
TRY = '''
try:
    import %s
except BaseException as error:
    while error:
        if isinstance(error, ModuleNotFoundError):
            print("lacks " + (error.name or ""))
        error = error.__cause__ or error.__context__
    raise
'''
rows = []
def optional(name, lacking):  # whether no package has the lacking module, and no metadata of the owner requires it
    if not lacking or lacking in getattr(sys, "stdlib_module_names", ()):
        return False
    # From Python 3.13 on, `files` leaves out the absent ones of the RECORD.
    rows[:] = rows or [(dist, {path.split(",")[0].split("/")[0].split(".")[0] for path in
                               (*map(str, dist.files or ()), *(dist.read_text("RECORD") or "").splitlines())})
                       for dist in metadata.distributions()]
    asked = [found for dist, has in rows if name in has for line in dist.requires or ()
             if not re.search("extra *==", line) for found in re.findall("^ *([A-Za-z0-9._-]+)", line)]
    plain = lambda text: re.sub("[-_.]+", "-", text).lower()
    return not any(lacking in has for _, has in rows) and plain(lacking) not in map(plain, asked)
bad = []
for name in sys.argv[1:]:  # each in a process of its own, as setuptools must be imported before what distutils brings
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", TRY % name], capture_output=True, text=True)
    lacks = [line[6:] for line in done.stdout.splitlines() if line.startswith("lacks ")]
    lacking = lacks[-1].split(".")[0] if lacks else ""
    if done.returncode and optional(name, lacking):
        print("note: %s is not tried: it imports %s, which no package here has or requires" % (name, lacking))
    elif done.returncode:
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
    """The result of a probe."""

    name: str
    """The probe's name."""
    ok: bool
    """Whether every command succeeded."""
    seconds: float
    """Its duration."""
    log: str
    """The commands with their output."""
    late: bool = False
    """Whether a command gave no answer in time."""

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {name: getattr(self, name) for name in ("name", "ok", "seconds", "log")}

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the probe beside its result, one sentence each."""
        return tuple(line.removeprefix(_NOTE) for line in self.log.splitlines() if line.startswith(_NOTE))


def plan(
    toolchain: Toolchain, environ: Mapping[str, str], modules: Sequence[str], gpu: bool, parts: Sequence[str] = ()
) -> Iterator[Probe]:
    """Yield the probes for a toolchain.

    Args:
        toolchain: The tools of the prefix.
        environ: The environment variables with the toolchain active.
        modules: The Python modules that must be importable.
        gpu: Whether the host has a GPU, so that compiled CUDA programs can be run.
        parts: The parts of the toolkit that CMake's FindCUDAToolkit must find, without ``CUDA::``.
    """
    python = str(toolchain.python)
    if toolchain.python.exists():
        seconds = _SECONDS + _IMPORT_SECONDS * len(modules)
        yield Probe("python", {"imports.py": _IMPORTS}, ((python, "imports.py", *modules),), seconds=seconds)
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
        parts: The parts that FindCUDAToolkit must find, without ``CUDA::``.
    """
    if not (toolchain.cmake and toolchain.nvcc and parts):
        return None
    command = (str(toolchain.cmake), "-S", ".", "-B", "build", *_generator(toolchain.ninja))
    return Probe("toolkit", {"CMakeLists.txt": _TOOLKIT.format(parts=" ".join(parts))}, (command,))


def _generator(ninja: Path | None) -> tuple[str, ...]:
    return ("-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}") if ninja else ()


def _compiler(environ: Mapping[str, str]) -> tuple[str, ...]:
    words = process.command_words(environ.get("CXX", ""))
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


def run(probe: Probe, environ: Mapping[str, str], *, bound: bool = True) -> Outcome:
    """Run a probe in a new folder with its time limit for each command; `bound` is passed to `process.run`."""
    start = time.monotonic()
    log = [probe.lacks] if probe.lacks else []
    ok, late = not probe.lacks, False
    with tempfile.TemporaryDirectory(prefix="tenv-probe-") as name:
        folder = Path(name)
        for file, text in probe.files.items():
            (folder / file).write_text(text)
        for command in probe.commands:
            ok, output, late = _step(command, environ, folder, probe.seconds, bound=bound)
            log.append(output)
            if not ok:
                break
    return Outcome(probe.name, ok, round(time.monotonic() - start, 3), "\n".join(log), late)


def _step(
    command: Sequence[str], environ: Mapping[str, str], folder: Path, limit: float, *, bound: bool
) -> tuple[bool, str, bool]:
    """Run one command; return whether it succeeded, its output, and whether it gave no answer in time."""
    words = [str(folder / command[0]) if command[0].startswith(("./", "build/")) else command[0], *command[1:]]
    done = process.run(words, environment=environ, folder=folder, timeout=limit, bound=bound)
    shown = f"$ {shlex.join(command)}"
    if isinstance(done, process.Missing):
        return False, f"{shown}\n{done.reason}", done.kind is ReasonKind.TIMEOUT
    output = "\n".join(text for text in (shown, done.stdout.strip(), done.stderr.strip()) if text)
    if done.status:
        output += f"\nfailed with status {done.status}"
    return not done.status, output, False


_VERSION = """\
#include <cstdio>
#include <{header}>
int main() {{
    {ask}
    std::printf("header %ld, library %ld\\n", (long)({expected}), (long)got);
    return got == ({expected}) ? 0 : 1;
}}
"""

# Each: the header, the statements that set `got`, and the expected value by the header.
_CUDNN = ("cudnn.h", "size_t got = cudnnGetVersion();", "CUDNN_VERSION")
_ASK_CUSPARSELT = """\
int a = 0, b = 0;
    if (cusparseLtGetProperty(MAJOR_VERSION, &a) || cusparseLtGetProperty(MINOR_VERSION, &b)) return 2;
    int got = 1000 * a + b;"""
_CUSPARSELT = ("cusparseLt.h", _ASK_CUSPARSELT, "1000 * CUSPARSELT_VER_MAJOR + CUSPARSELT_VER_MINOR")
_NCCL = ("nccl.h", "int got = 0; if (ncclGetVersion(&got)) return 2;", "NCCL_VERSION_CODE")

_MAGMA = """\
#include <magma_v2.h>
int main(int count, char **) {
    if (count > 99) { magma_int_t a, b, c; magma_version(&a, &b, &c); magma_init(); }
    return MAGMA_VERSION_MAJOR >= 2 ? 0 : 1;
}
"""

_OPENMP = """\
#include <omp.h>
#include <cstdio>
int main() {
    long sum = 0;
    #pragma omp parallel for reduction(+:sum) num_threads(4)
    for (int i = 0; i < 1000; ++i) sum += i;
    std::printf("%ld with OpenMP %d\\n", sum, _OPENMP);
    return sum == 499500 ? 0 : 1;
}
"""

_TWICE = "__global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }\n"

_TORCH = """\
import importlib.util, os, shutil, sys
lacking = ["setuptools"] * (not importlib.util.find_spec("setuptools")) + ["ninja"] * (not shutil.which("ninja"))
if lacking:
    sys.exit(print("note: an extension of torch is not tried: it takes %s, and nothing here has it" % lacking[0]))
import torch
from torch.utils.cpp_extension import load_inline
source = "torch::Tensor twice(torch::Tensor x) { return x + x; }"
os.makedirs("build")
probe = load_inline("probe", cpp_sources=source, functions=["twice"], build_directory=os.path.abspath("build"))
assert probe.twice(torch.ones(2)).tolist() == [2.0, 2.0]
"""

_ARCH = re.compile(r"(\d{1,3})\.(\d)([af]?)(\+PTX)?", re.IGNORECASE)


def library_probes(toolchain: Toolchain, environ: Mapping[str, str], compiler: tuple[str, ...]) -> Iterator[Probe]:
    """Yield the probes for the libraries of a toolchain.

    Args:
        toolchain: The tools of the prefix.
        environ: The environment variables with the toolchain active.
        compiler: The words that call the C++ compiler.
    """
    if not any("clang" in Path(word).name for word in compiler):  # its OpenMP is a package of its own
        build = (*compiler, "-fopenmp", "-o", "probe", "probe.cpp")
        yield Probe("openmp", {"probe.cpp": _OPENMP}, (build, ("./probe",)))
    if toolchain.nvcc:
        for option, name in _architectures(environ.get("TORCH_CUDA_ARCH_LIST", "")):
            yield Probe(f"nvcc-{name}", {"probe.cu": _TWICE}, ((str(toolchain.nvcc), *option, "-c", "probe.cu"),))
    for name, root, library, program in (
        ("cudnn", toolchain.cudnn, "cudnn", _CUDNN),
        ("cusparselt", toolchain.cusparselt, "cusparseLt", _CUSPARSELT),
        ("nccl", toolchain.nccl, "nccl", _NCCL),
    ):
        if root and _has_whole_headers(toolchain):
            yield _version_probe(name, root, library, program, toolchain, compiler)
    if toolchain.magma:
        yield _magma_probe(toolchain.magma, toolchain, compiler)
    if _has_torch(toolchain) and toolchain.python.exists():
        command = (str(toolchain.python), "probe.py")
        yield Probe("torch-extension", {"probe.py": _TORCH}, (command,), seconds=_EXTENSION_SECONDS)


def _has_whole_headers(toolchain: Toolchain) -> bool:
    """Return whether code can be compiled with CUDA's headers: a wheel of torch brings them without those of nvcc."""
    folder = toolchain.cuda / "include" if toolchain.cuda else None
    return not folder or not (folder / "cuda_runtime.h").is_file() or (folder / "crt" / "host_config.h").is_file()


def _architectures(text: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield nvcc's option for each architecture of a TORCH_CUDA_ARCH_LIST, with a name, without names of families."""
    for word in dict.fromkeys(re.split(r"[;\s,]+", text)):
        if match := _ARCH.fullmatch(word):
            number = f"{int(match[1])}{match[2]}{match[3].lower()}"
            code = f"[sm_{number},compute_{number}]" if match[4] else f"sm_{number}"
            yield ("-gencode", f"arch=compute_{number},code={code}"), number


def _headers(root: Path, toolchain: Toolchain) -> list[str]:
    folders = [root / "include", *([toolchain.cuda / "include"] if toolchain.cuda else [])]
    return [f"-I{folder}" for folder in dict.fromkeys(folders)]


def _libraries(root: Path, toolchain: Toolchain) -> list[str]:
    roots = dict.fromkeys([root, *([toolchain.cuda] if toolchain.cuda else [])])
    folders = [folder for one in roots for folder in (one / "lib64", one / "lib") if folder.is_dir()]
    return [word for folder in folders for word in (f"-L{folder}", f"-Wl,-rpath,{folder}", f"-Wl,-rpath-link,{folder}")]


def _version_probe(
    name: str, root: Path, library: str, program: tuple[str, str, str], toolchain: Toolchain, compiler: tuple[str, ...]
) -> Probe:
    header, ask, expected = program
    text = _VERSION.format(header=header, ask=ask, expected=expected)
    # NCCL's libraries name symbols of the driver, which the loader looks up when they are called.
    words = ["-Wl,--allow-shlib-undefined", *_libraries(root, toolchain), f"-l{library}"]
    build = (*compiler, *_headers(root, toolchain), "-o", "probe", "probe.cpp", *words)
    return Probe(name, {"probe.cpp": text}, (build, ("./probe",)))


def _magma_probe(root: Path, toolchain: Toolchain, compiler: tuple[str, ...]) -> Probe:
    """Return the probe for MAGMA: it is linked, and not run, since it is static and asks for a GPU."""
    words = ["-Wl,--unresolved-symbols=ignore-all", *_libraries(root, toolchain), "-lmagma"]
    build = (*compiler, *_headers(root, toolchain), "-o", "probe", "probe.cpp", *words)
    return Probe("magma", {"probe.cpp": _MAGMA}, (build,))


def _has_torch(toolchain: Toolchain) -> bool:
    site = toolchain.site_packages
    return (site / "torch" / "__init__.py").is_file() or any(site.glob(infos_of("torch")))
