"""A PyTorch in miniature: the same build files, names and summary, so that `tenv build` goes all its way in seconds.

`make_checkout` writes a checkout of an era. Its `c10` is a library of one function, its `torch` a Python module that
multiplies small matrices in C++, without its headers, whose reading is most of a small file's time; its `backend.py` is
a build backend that needs no package.
"""

import subprocess
from enum import StrEnum
from pathlib import Path

__all__ = ["MiniEra", "make_checkout", "make_git"]


class MiniEra(StrEnum):
    """The eras of the build."""

    SCIKIT = "scikit"
    CMAKE = "cmake"
    CMAKE_ONLY = "cmake-only"
    BUILD_DEPS = "build-deps"
    LIBRARIES = "libraries"


_CMAKE = """\
cmake_minimum_required(VERSION 3.13...4.0)
# The compilers are known to work: trying them takes as long as compiling all of this.
set(CMAKE_C_COMPILER_FORCED TRUE)
set(CMAKE_CXX_COMPILER_FORCED TRUE)
project(Torch CXX C)
{forwarding}
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
option(USE_CUDA "Use CUDA" ON)
option(USE_MKL "Use MKL" ON)
option(USE_NUMPY "Use NumPy" ON)
option(USE_OPENMP "Use OpenMP" ON)
option(USE_DISTRIBUTED "Use distributed" ON)
option(USE_CUDNN "Use cuDNN" ON)
option(BUILD_TEST "Build tests" OFF)
if(NOT EXISTS "${{PROJECT_SOURCE_DIR}}/third_party/fmt/CMakeLists.txt")
  message(FATAL_ERROR "Submodule third_party/fmt appears incomplete.\\nPlease run: git submodule update --init")
endif()
{python}if(USE_CUDA)
  message(WARNING "Caffe2: CUDA cannot be found.")
  message(WARNING "Not compiling with CUDA. Suppress this warning with -DUSE_CUDA=OFF.")
  set(USE_CUDA OFF)
endif()
if(USE_DISTRIBUTED AND NOT EXISTS "${{PROJECT_SOURCE_DIR}}/third_party/gloo/CMakeLists.txt")
  message(WARNING "gloo was not found. Turning USE_DISTRIBUTED off.")
  set(USE_DISTRIBUTED OFF)
endif()
find_path(MKL_INCLUDE_DIR mkl.h)
if(NOT MKL_INCLUDE_DIR)
  set(USE_MKL OFF)
endif()
add_subdirectory(c10)
add_subdirectory(caffe2)
if(DEFINED USE_CUSTOM_DEBINFO)
  set_source_files_properties("${{PROJECT_SOURCE_DIR}}/${{USE_CUSTOM_DEBINFO}}" TARGET_DIRECTORY c10 torch_python
    PROPERTIES COMPILE_FLAGS "-g")
endif()
message(STATUS "")
message(STATUS "******** Summary ********")
message(STATUS "General:")
message(STATUS "  CMake version         : ${{CMAKE_VERSION}}")
message(STATUS "  C++ compiler          : ${{CMAKE_CXX_COMPILER}}")
message(STATUS "  Build type            : ${{CMAKE_BUILD_TYPE}}")
message(STATUS "  TORCH_VERSION         : 2.9.0a0")
message(STATUS "  Python executable     : ${{Python_EXECUTABLE}}")
message(STATUS "  BUILD_TEST            : ${{BUILD_TEST}}")
message(STATUS "  USE_CUDA              : ${{USE_CUDA}}")
message(STATUS "  USE_MKL               : ${{USE_MKL}}")
message(STATUS "  USE_NUMPY             : ${{USE_NUMPY}}")
message(STATUS "  USE_OPENMP            : ${{USE_OPENMP}}")
message(STATUS "  USE_DISTRIBUTED       : ${{USE_DISTRIBUTED}}")
"""

_C10 = """\
add_library(c10 SHARED core/Scalar.cpp)
target_include_directories(c10 PUBLIC ${PROJECT_SOURCE_DIR})
install(TARGETS c10 DESTINATION lib)
"""

_CAFFE2 = """\
add_library(torch_python MODULE ${PROJECT_SOURCE_DIR}/aten/src/ATen/native/BinaryOps.cpp Module.cpp)
target_link_libraries(torch_python PRIVATE c10 Python::Module)
set_target_properties(torch_python PROPERTIES PREFIX "" OUTPUT_NAME _C INSTALL_RPATH "$ORIGIN/lib")
install(TARGETS torch_python DESTINATION .)
"""

_FORWARDING = """\
execute_process(COMMAND "${CMAKE_COMMAND}" -E environment OUTPUT_VARIABLE _all OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REPLACE "\\n" ";" _lines "${_all}")
foreach(_line IN LISTS _lines)
  if(_line MATCHES "^((BUILD_|USE_|CMAKE_)[A-Za-z_0-9]+)=(.*)")
    set(_name "${CMAKE_MATCH_1}")
    set(_value "${CMAKE_MATCH_3}")
    if(NOT DEFINED ${_name})
      set(${_name} "${_value}" CACHE STRING "From environment" FORCE)
    endif()
  endif()
endforeach()
"""

_FIND_PYTHON = "find_package(Python COMPONENTS Interpreter Development.Module REQUIRED)\n"
_ASK_PYTHON = """\
execute_process(COMMAND "${Python_EXECUTABLE}" -c "import sysconfig; print(sysconfig.get_path('include'))"
  OUTPUT_VARIABLE _include OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
add_library(Python::Module INTERFACE IMPORTED)
set_target_properties(Python::Module PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_include}")
"""
"""What `find_package` asks nine Pythons, as the older eras ask one."""

_SCALAR_H = "#pragma once\nnamespace c10 { double add(double a, double b); }\n"
_SCALAR = '#include "c10/core/Scalar.h"\nnamespace c10 { double add(double a, double b) { return a + b; } }\n'
_OPS = """\
#include "c10/core/Scalar.h"
namespace at {
double* filled(int size, double value) {
  double* c = new double[size];
  for (int i = 0; i < size; ++i) c[i] = value;
  return c;
}
double* matmul(const double* a, const double* b, int n) {
  double* c = filled(n * n, 0.0);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      for (int k = 0; k < n; ++k) c[i * n + j] = c10::add(c[i * n + j], a[i * n + k] * b[k * n + j]);
  return c;
}
}
"""
_MODULE = """\
#include <Python.h>
namespace at { double* matmul(const double*, const double*, int); }
static PyObject* product(PyObject*, PyObject* args) {
  PyObject *a, *b; int n;
  if (!PyArg_ParseTuple(args, "OOi", &a, &b, &n)) return nullptr;
  double *x = new double[n * n], *y = new double[n * n];
  for (Py_ssize_t i = 0; i < n * n; ++i) {
    x[i] = PyFloat_AsDouble(PyList_GetItem(a, i));
    y[i] = PyFloat_AsDouble(PyList_GetItem(b, i));
  }
  double* z = at::matmul(x, y, n);
  PyObject* out = PyList_New(0);
  for (Py_ssize_t i = 0; i < n * n; ++i) {
    PyObject* f = PyFloat_FromDouble(z[i]);
    PyList_Append(out, f);
    Py_DECREF(f);
  }
  delete[] x; delete[] y; delete[] z;
  return out;
}
static PyMethodDef methods[] = {{"product", product, METH_VARARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", "", -1, methods, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit__C(void) { return PyModule_Create(&module); }
"""

_INIT = '''\
"""A torch in miniature."""

from torch import _C
from torch.version import __version__, cuda


class Tensor(list):
    """A square matrix."""

    def __matmul__(self, other):
        flat = _C.product([x for row in self for x in row], [x for row in other for x in row], len(self))
        return Tensor(flat[i : i + len(self)] for i in range(0, len(flat), len(self)))

    def tolist(self):
        return [list(row) for row in self]


def ones(rows, columns):
    return Tensor([1.0] * columns for _ in range(rows))


class __config__:
    @staticmethod
    def show():
        return "PyTorch built with:\\n  - a small C++ compiler"
'''

_BUILD_LIBS = '''\
"""What setup.py shares with the backend: the build of the libraries in ``build``."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def generate():
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    if (folder / "CMakeCache.txt").exists() and (folder / "build.ninja").exists():
        return
    given = [f"-D{n}={v}" for n, v in os.environ.items() if n.startswith(("USE_", "BUILD_", "CMAKE_"))]
    build_type = "RelWithDebInfo" if os.environ.get("REL_WITH_DEB_INFO") == "1" else "Release"
    build_type = "Debug" if os.environ.get("DEBUG") == "1" else build_type
    fixed = [f"-DCMAKE_INSTALL_PREFIX={ROOT / 'torch'}", f"-DPython_EXECUTABLE={sys.executable}"]
    words = ["cmake", "-GNinja", *fixed, f"-DCMAKE_BUILD_TYPE={build_type}", *given, str(ROOT)]
    if subprocess.run(words, cwd=folder).returncode:
        sys.exit(1)


def build_pytorch():
    generate()
    if subprocess.run(["cmake", "--build", ".", "--target", "install"], cwd=ROOT / "build").returncode:
        sys.exit(1)


def install():
    """Lead the Python that runs this to the checkout, as `setup.py develop` does."""
    import sysconfig

    site = Path(sysconfig.get_path("purelib"))
    (site / "torch_editable.pth").write_text(f"{ROOT}\\n")
    info = site / "torch-2.9.0a0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: torch\\nVersion: 2.9.0a0\\n")
'''

_SETUP = """\
import os
import sys

version = '2.9.0a0'
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tools.build_pytorch_libs import build_pytorch, generate, install

{only}
if "build_deps" in sys.argv:
    build_pytorch()
if "develop" in sys.argv:
    build_pytorch()
    install()
"""
_ONLY = """\
if "--cmake-only" in sys.argv:
    generate()
    sys.exit(0)
"""

_BACKEND = '''\
"""A build backend that needs nothing: it builds the libraries and writes a wheel."""

import base64
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent
TAG = "py3-none-any"


def _libraries(settings):
    sys.path.insert(0, str(ROOT))
    folder = (settings or {}).get("build-dir")
    if folder is None:
        from tools.build_pytorch_libs import build_pytorch

        build_pytorch()
        return ROOT / "torch"
    place = Path(folder) / "package"
    for words in (["--build", folder], ["--install", folder, "--prefix", str(place)]):
        if subprocess.run(["cmake", *words]).returncode:
            sys.exit(1)
    return place


def _write(folder, members):
    name = f"torch-2.9.0a0-{TAG}.whl"
    info = "torch-2.9.0a0.dist-info"
    members = dict(members)
    members[f"{info}/METADATA"] = b"Metadata-Version: 2.1\\nName: torch\\nVersion: 2.9.0a0\\n"
    members[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\\nGenerator: small\\nRoot-Is-Purelib: true\\nTag: {TAG}\\n".encode()
    rows = []
    for path, data in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(data)}")
    members[f"{info}/RECORD"] = ("\\n".join([*rows, f"{info}/RECORD,,"]) + "\\n").encode()
    with zipfile.ZipFile(Path(folder) / name, "w") as archive:
        for path, data in members.items():
            archive.writestr(path, data)
    return name


def get_requires_for_build_editable(settings=None):
    return []


def get_requires_for_build_wheel(settings=None):
    return []


def build_editable(folder, settings=None, metadata=None):
    made = _libraries(settings)
    if made == ROOT / "torch":
        return _write(folder, {"torch_editable.pth": f"{ROOT}\\n".encode()})
    return build_wheel(folder, settings, made=made)


def build_wheel(folder, settings=None, metadata=None, made=None):
    made = made or _libraries(settings)
    members = {f"torch/{p.name}": p.read_bytes() for p in (ROOT / "torch").glob("*.py")}
    members |= {f"torch/{p.relative_to(made)}": p.read_bytes() for p in made.rglob("*.so")}
    return _write(folder, members)
'''

_PYPROJECT = """\
[build-system]
requires = []
build-backend = "{backend}"
backend-path = ["."]
[project]
name = "torch"
version = "2.9.0a0"
requires-python = ">=3.10"
dependencies = []
"""


def make_checkout(folder: Path, era: MiniEra = MiniEra.CMAKE_ONLY) -> Path:
    """Write a checkout of an era, with every submodule, and return it."""
    forwarding = era in (MiniEra.SCIKIT, MiniEra.CMAKE)
    files = {
        "CMakeLists.txt": _CMAKE.format(
            forwarding="include(cmake/EnvVarForwarding.cmake)" if forwarding else "",
            python=_FIND_PYTHON if forwarding else _ASK_PYTHON,
        ),
        "c10/CMakeLists.txt": _C10,
        "c10/core/Scalar.h": _SCALAR_H,
        "c10/core/Scalar.cpp": _SCALAR,
        "caffe2/CMakeLists.txt": _CAFFE2,
        "caffe2/Module.cpp": _MODULE,
        "aten/src/ATen/native/BinaryOps.cpp": _OPS,
        "torch/__init__.py": _INIT,
        "torch/version.py": "__version__ = '2.9.0a0'\ncuda = None\n",
        "torch/csrc/README.md": "",
        "tools/__init__.py": "",
        "tools/build_pytorch_libs.py": _BUILD_LIBS,
        "third_party/fmt/CMakeLists.txt": "# fmt\n",
        ".gitmodules": '[submodule "third_party/fmt"]\n\tpath = third_party/fmt\n\turl = https://example.org/fmt\n',
        "setup.py": _SETUP.replace("{only}", _ONLY if era not in (MiniEra.BUILD_DEPS, MiniEra.LIBRARIES) else ""),
    }
    if forwarding:
        files["cmake/EnvVarForwarding.cmake"] = _FORWARDING
    if era not in (MiniEra.BUILD_DEPS, MiniEra.LIBRARIES):
        files["version.txt"] = "2.9.0a0\n"
        scikit = era is MiniEra.SCIKIT  # its backend stands in for the real one, by the same name
        files["pyproject.toml"] = _PYPROJECT.replace("{backend}", "scikit_build_core.build" if scikit else "backend")
        files["scikit_build_core/build.py" if scikit else "backend.py"] = _BACKEND.replace(
            "parent\nTAG", "parent.parent\nTAG" if scikit else "parent\nTAG"
        )
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def make_git(checkout: Path) -> None:
    """Make a git repository of a checkout, with its files committed."""
    for words in (
        ("init", "-q"),
        ("add", "-A"),
        ("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "all"),
    ):
        subprocess.run(["git", *words], cwd=checkout, check=True, capture_output=True)
