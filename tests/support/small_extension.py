"""A package that compiles against torch, in miniature: with a made torch and a made setuptools it takes seconds."""

from pathlib import Path

from tests.support.fakes import make_wheel

__all__ = ["make_cmake_project", "make_setup_checkout", "make_torch_and_setuptools"]

_TORCH = {
    "torch/__init__.py": "from torch.version import __version__\nfrom torch import version\n",
    "torch/version.py": "__version__ = {version!r}\ncuda = None\n",
    "torch/utils/__init__.py": "",
    "torch/utils/cpp_extension.py": (
        "from setuptools import Extension, build_ext\n"
        "class BuildExtension(build_ext):\n    use_ninja = True\n"
        "CppExtension = Extension\n"
    ),
    "torch/share/cmake/Torch/TorchConfig.cmake": (
        'set(TORCH_LIBRARIES "")\nset(Torch_FOUND TRUE)\nmessage(STATUS "small torch {version}")\n'
    ),
}

_SETUPTOOLS = '''\
"""As much of setuptools as a `setup.py` of the tests calls: it compiles what is older than its source."""

import configparser
import os
import subprocess
import sys
import sysconfig


class Extension:
    def __init__(self, name, sources, extra_compile_args=None):
        self.name, self.sources, self.extra_compile_args = name, sources, extra_compile_args


class Distribution:
    pass


class build_ext:
    use_ninja = False

    def __init__(self, distribution):
        pass


def setup(**words):
    if "build_ext" not in sys.argv:
        return
    config = configparser.RawConfigParser()
    config.read(os.environ["DIST_EXTRA_CONFIG"])
    temp, lib = (config["build_ext"][key] for key in ("build_temp", "build_lib"))
    for extension in words["ext_modules"]:
        objects = []
        for source in extension.sources:
            made = os.path.join(temp, source.rpartition(".")[0] + ".o")
            objects.append(made)
            if os.path.exists(made) and os.path.getmtime(made) > os.path.getmtime(source) and "--force" not in sys.argv:
                continue
            os.makedirs(os.path.dirname(made), exist_ok=True)
            include = "-I" + sysconfig.get_path("include")
            print("compiles", source, flush=True)
            subprocess.run(["c++", "-O0", "-fPIC", include, "-c", source, "-o", made], check=True)
        path = extension.name.replace(".", os.sep) + sysconfig.get_config_var("EXT_SUFFIX")
        for place in (os.path.join(lib, path), path):
            os.makedirs(os.path.dirname(place), exist_ok=True)
            subprocess.run(["c++", "-shared", *objects, "-o", place], check=True)
'''

_BACKEND = """\
import base64, hashlib, os, zipfile


def _write(folder, files):
    files["small_ops-1.0.dist-info/METADATA"] = "Metadata-Version: 2.1\\nName: small-ops\\nVersion: 1.0\\n"
    files["small_ops-1.0.dist-info/WHEEL"] = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    files["small_ops-1.0.dist-info/top_level.txt"] = "small_ops\\n"
    rows = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows += f"{path},sha256={digest},{len(text.encode())}\\n"
    files["small_ops-1.0.dist-info/RECORD"] = rows + "small_ops-1.0.dist-info/RECORD,,\\n"
    name = "small_ops-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    return name


class _Backend:
    def build_editable(self, folder, settings=None, metadata=None):
        return _write(folder, {"small_ops.pth": os.getcwd() + "\\n"})

    def build_wheel(self, folder, settings=None, metadata=None):
        return _write(folder, {"small_ops/__init__.py": "BUILT = True\\n"})


__legacy__ = _Backend()
build_editable, build_wheel = __legacy__.build_editable, __legacy__.build_wheel
"""

_SETUP = """\
import os
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="small_ops",
    version="1.0",
    ext_modules=[CppExtension("small_ops._C", ["csrc/module.cpp", "csrc/twice.cpp"])],
    cmdclass={"build_ext": BuildExtension},
)
"""

_MODULE = """\
#include <Python.h>
int twice(int);
static PyObject* call(PyObject*, PyObject*) { return PyLong_FromLong(twice(21)); }
static PyMethodDef methods[] = {{"call", call, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", "", -1, methods, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit__C(void) { return PyModule_Create(&module); }
"""

_CMAKE = """\
cmake_minimum_required(VERSION 3.13...4.0)
set(CMAKE_CXX_COMPILER_FORCED TRUE)
project(small-app CXX)
find_package(Torch REQUIRED)
add_library(ops SHARED twice.cpp once.cpp)
add_executable(app app.cpp)
"""


def make_torch_and_setuptools(index: Path, *versions: str) -> None:
    """Write wheels of a torch of some versions, and of what a `setup.py` calls, into the folder of an index."""
    for version in versions:
        files = {path: text.replace("{version!r}", repr(version)) for path, text in _TORCH.items()}
        make_wheel(index, "torch", version, files=files)
    made = {"setuptools/__init__.py": _SETUPTOOLS, "setuptools/build_meta.py": _BACKEND}
    make_wheel(index, "setuptools", "80.0", files={**made, "distutils/__init__.py": "", "distutils/core.py": ""})


def make_setup_checkout(folder: Path) -> Path:
    """Write a checkout whose `setup.py` compiles two files, and return it."""
    files = {
        "setup.py": _SETUP,
        "csrc/module.cpp": _MODULE,
        "csrc/twice.cpp": "int twice(int x) { return 2 * x; }\n",
        "small_ops/__init__.py": "from small_ops._C import call\nVALUE = call()\n",
    }
    return _write(folder, files)


def make_cmake_project(folder: Path) -> Path:
    """Write a CMake project with `find_package(Torch)`, two files and no package, and return it."""
    files = {
        "CMakeLists.txt": _CMAKE,
        "twice.cpp": "int twice(int x) { return 2 * x; }\n",
        "app.cpp": "int main() { return 0; }\n",
        "once.cpp": "int once(int x) { return x; }\n",
    }
    return _write(folder, files)


def _write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder
