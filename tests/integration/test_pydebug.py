"""The target `pydebug`, created for real: gdb shows C++ and Python frames of one program, by file and line."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tenv.core import process

pytestmark = [pytest.mark.real, pytest.mark.skipif(sys.platform != "linux", reason="gdb and a debug Python of Linux")]

EXTENSION = """\
#include <Python.h>
#include <csignal>

static long fails_at_three(long depth) {
    if (depth == 3) std::raise(SIGABRT);  // line 5
    return depth;
}

static PyObject *call(PyObject *, PyObject *argument) {
    return PyLong_FromLong(fails_at_three(PyLong_AsLong(argument)));  // line 10
}

static PyMethodDef methods[] = {{"call", call, METH_O, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "crashing", "", -1, methods, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit_crashing() { return PyModule_Create(&module); }
"""
SCRIPT = """\
import crashing

def outer(depth):
    inner = depth + 1
    return crashing.call(inner)

outer(2)
"""


def tenv(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tenv", *words], cwd=folder, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def created(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the shipped target was created."""
    assert process.find("gdb"), "apt install gdb"
    folder = tmp_path_factory.mktemp("pydebug")
    said = tenv(folder, "create", "pydebug", "--prefix", str(folder / "env"))
    assert "python-debug 3." in said
    assert "gdb 1" in said
    assert "no python-gdb.py" not in said
    return folder


def run(folder: Path, *words: str) -> str:
    return tenv(folder, "run", "--prefix", str(folder / "env"), "pydebug", "--", *words)


def test_it_is_a_debug_python_in_which_wheels_of_the_release_abi_load(created: Path) -> None:
    asked = "import sys, sysconfig, numpy, yaml; print(sysconfig.get_config_var('Py_DEBUG'), numpy.arange(4).sum())"
    assert run(created, "python", "-c", asked).split() == ["1", "6"]
    assert run(created, "python", "-c", "import sys; print(hasattr(sys, 'gettotalrefcount'))").strip() == "True"
    assert "ninja" in run(created, "python", "-c", "import ninja; print(ninja.__name__)")


def test_a_backtrace_has_the_frame_of_the_extension_and_the_line_of_python(created: Path) -> None:
    (created / "crashing.cpp").write_text(EXTENSION)
    (created / "crash.py").write_text(SCRIPT)
    ask = "import sysconfig; print(sysconfig.get_path('include')); print(sysconfig.get_config_var('EXT_SUFFIX'))"
    include, suffix = run(created, "python", "-c", ask).split()
    compiled = f"crashing{suffix}"
    run(created, "g++", "-g", "-O0", "-shared", "-fPIC", f"-I{include}", "crashing.cpp", "-o", compiled)
    said = run(
        created,
        *("gdb", "-nx", "-batch", "-ex", "run", "-ex", "bt", "-ex", "py-bt", "--args", "python", "crash.py"),
    )
    assert re.search(r"#\d+ .*fails_at_three \(depth=3\) at .*crashing\.cpp:5\b", said), said
    assert re.search(r"#\d+ .*\bcall \(.*\) at .*crashing\.cpp:10\b", said), said
    assert re.search(r'File ".*crash\.py", line 5, in outer', said), said
    assert re.search(r'File ".*crash\.py", line 7, in <module>', said), said
