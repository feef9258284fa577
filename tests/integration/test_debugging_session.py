"""A session of VS Code's compound, driven by the values of the exported files alone: Python and a C++ extension."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tenv.debugging.python_processes import read_rights, starting
from tests.integration.bench import Bench, check
from tests.support.debug_adapter import Adapter, Gdb
from tests.support.vs_code import expanded, read_settings

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(shutil.which("gdb") is None, reason="there is no gdb on this machine"),
    pytest.mark.skipif(starting(read_rights()) is not None, reason="this machine forbids tracing"),
]

EXTENSION = """\
#include <Python.h>

static long add_one(long number) {
    return number + 1;
}

static PyObject* more(PyObject*, PyObject* number) {
    return PyLong_FromLong(add_one(PyLong_AsLong(number)));
}

static PyMethodDef methods[] = {{"more", more, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "one", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit_one() {
    return PyModule_Create(&module);
}
"""
PYTHON = """\
import one

def more(number):
    return one.more(number)

print("result", more(41))
"""
IN_EXTENSION, IN_PYTHON = 4, 4  # the lines of the breakpoints


def test_both_breakpoints_are_hit(bench: Bench, tmp_path: Path) -> None:
    prefix, work = tmp_path / "prefix", tmp_path / "work"
    work.mkdir()
    bench.tenv("create", "cpu", "--prefix", prefix)
    bench.run(prefix, "python", "-m", "pip", "install", "--quiet", "debugpy")
    bench.tenv("export", "vscode", "cpu", "--prefix", prefix, "--output", work)
    (work / "one.cpp").write_text(EXTENSION)
    (work / "main.py").write_text(PYTHON)
    headers = bench.run(prefix, "python", "-c", "import sysconfig; print(sysconfig.get_path('include'))")
    check(["g++", "-O0", "-g", "-shared", "-fPIC", f"-I{headers.strip()}", "-o", "one.so", "one.cpp"], work)
    launch, tasks = (expanded(read_settings(work / ".vscode" / f"{name}.json"), work) for name in ("launch", "tasks"))
    entries = {entry["name"]: entry for entry in launch["configurations"]}
    native, python = (entries[name] for name in launch["compounds"][0]["configurations"])

    def filled(text: str) -> str:
        places = {"file": str(work / "main.py"), "fileDirname": str(work), "workspaceFolder": str(work)}
        return re.sub(
            r"\$\{(env:)?(\w+)\}", lambda found: os.environ.get(found[2], "") if found[1] else places[found[2]], text
        )

    added = {row["name"]: filled(row["value"]) for row in native["environment"]}
    with Gdb(native["miDebuggerPath"], Path(filled(native["cwd"])), {**os.environ, **added}) as gdb:
        for row in native["setupCommands"]:
            gdb.send(row["text"])
        gdb.send(f"-file-exec-and-symbols {native['program']}")
        gdb.send(f"-exec-arguments {' '.join(map(filled, native['args']))}")
        gdb.send(f"-break-insert -f one.cpp:{IN_EXTENSION}")
        gdb.send("-exec-run")
        (task,) = [task for task in tasks["tasks"] if task["label"] == python["preLaunchTask"]]
        subprocess.run([task["command"], *task["args"]], check=True, timeout=120)
        with Adapter(python["connect"]["host"], python["connect"]["port"]) as adapter:
            stopped = _stop_in_python(adapter, python, filled)
            assert stopped["body"]["reason"] == "breakpoint"
            adapter.send("continue", {"threadId": stopped["body"]["threadId"]})
            hit = gdb.wait(lambda line: 'reason="breakpoint-hit"' in line)
            assert 'func="add_one"' in hit
            assert '{name="number",value="41"}' in hit
            gdb.send("-exec-continue")
            gdb.wait(lambda line: "result 42" in line)
            gdb.wait(lambda line: 'reason="exited' in line)


def _stop_in_python(adapter: Adapter, entry: dict[str, Any], filled: Any) -> dict[str, Any]:
    adapter.send("initialize", {"adapterID": "debugpy", "pathFormat": "path", "linesStartAt1": True})
    adapter.wait("command", "initialize")
    mappings = [{key: filled(value) for key, value in row.items()} for row in entry["pathMappings"]]
    adapter.send("attach", {"connect": entry["connect"], "justMyCode": entry["justMyCode"], "pathMappings": mappings})
    adapter.wait("event", "initialized")
    adapter.send("setBreakpoints", {"source": {"path": filled("${file}")}, "breakpoints": [{"line": IN_PYTHON}]})
    adapter.wait("command", "setBreakpoints")
    adapter.send("configurationDone")
    return adapter.wait("event", "stopped")
