"""Debug `torch.randn` of a torch that was built with `--debug-files`, as VS Code does and by `tenv gdb`.

    python scripts/debug_torch.py TREE TARGET [--tenv PROGRAM]

TREE is a checkout in which `tenv build TARGET --debug-files aten/src/ATen/native/TensorFactories.cpp` was done. One
session reads the files that `tenv export vscode` writes, drives debugpy and gdb by their values alone, and stops at a
breakpoint in Python and at one in TensorFactories.cpp. The other stops at the same line under `tenv gdb`, and prints
the frames of C++ and of Python, and the size that was asked for.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[1]
sys.path[:0] = [str(CHECKOUT)]

from tests.support.debug_adapter import Adapter, Gdb  # noqa: E402 (the checkout is no installed package)
from tests.support.vs_code import read_settings  # noqa: E402 (as above)

SOURCE = "aten/src/ATen/native/TensorFactories.cpp"
PROGRAM = """\
import torch

def draw(rows, columns):
    return torch.randn(rows, columns)

print("result", tuple(draw(2, 3).shape))
"""
IN_PYTHON = 4
SECONDS = 900.0


def line_of_randn(tree: Path) -> int:
    """Return the line of the first statement of `at::native::randn` that `torch.randn` reaches."""
    lines = (tree / SOURCE).read_text(encoding="utf-8").splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("Tensor randn(IntArrayRef size"))
    return next(number for number in range(at, at + 12) if lines[number].lstrip().startswith("return ")) + 1


def said(what: str) -> None:
    """Print a step of a session."""
    print(f"[{time.strftime('%H:%M:%S')}] {what}", flush=True)


def by_vs_code(tree: Path, target: str, tenv: str, work: Path) -> None:
    """Start the compound of the exported launch.json, and stop in both languages."""
    prefix = tree / ".tenv" / "envs" / target
    words = [tenv, "export", "vscode", target, "--prefix", str(prefix), "--output", str(work)]
    subprocess.run(words, cwd=tree, check=True)
    launch, tasks = (read_settings(work / ".vscode" / f"{name}.json") for name in ("launch", "tasks"))
    entries = {entry["name"]: entry for entry in launch["configurations"]}
    native, python = (entries[name] for name in launch["compounds"][0]["configurations"])

    def filled(text: str) -> str:
        places = {"file": str(work / "main.py"), "fileDirname": str(work), "workspaceFolder": str(work)}
        return re.sub(
            r"\$\{(env:)?(\w+)\}", lambda found: os.environ.get(found[2], "") if found[1] else places[found[2]], text
        )

    added = {row["name"]: filled(row["value"]) for row in native["environment"]}
    with Gdb(native["miDebuggerPath"], Path(filled(native["cwd"])), {**os.environ, **added}, SECONDS) as gdb:
        for row in native["setupCommands"]:
            gdb.send(row["text"])
        gdb.send(f"-file-exec-and-symbols {native['program']}")
        gdb.send(f"-exec-arguments {' '.join(map(filled, native['args']))}")
        gdb.send(f"-break-insert -f TensorFactories.cpp:{line_of_randn(tree)}")
        gdb.send("-exec-run")
        said(f"started by {native['name']!r}")
        (task,) = [task for task in tasks["tasks"] if task["label"] == python["preLaunchTask"]]
        subprocess.run([task["command"], *task["args"]], check=True, timeout=SECONDS)
        with Adapter(python["connect"]["host"], python["connect"]["port"], SECONDS) as adapter:
            stopped = stop_in_python(adapter, python, filled)
            said(f"Python stopped: {stopped['body']['reason']} in main.py:{IN_PYTHON}")
            adapter.send("continue", {"threadId": stopped["body"]["threadId"]})
            said(gdb.wait(lambda line: 'reason="breakpoint-hit"' in line))
            gdb.send("-exec-continue")
            said(gdb.wait(lambda line: "result (2, 3)" in line))


def stop_in_python(adapter: Adapter, entry: dict[str, Any], filled: Any) -> dict[str, Any]:
    """Attach as the Python extension does, with a breakpoint, and return the event of the stop."""
    adapter.send("initialize", {"adapterID": "debugpy", "pathFormat": "path", "linesStartAt1": True})
    adapter.wait("command", "initialize")
    mappings = [{key: filled(value) for key, value in row.items()} for row in entry["pathMappings"]]
    adapter.send("attach", {"connect": entry["connect"], "justMyCode": entry["justMyCode"], "pathMappings": mappings})
    adapter.wait("event", "initialized")
    adapter.send("setBreakpoints", {"source": {"path": filled("${file}")}, "breakpoints": [{"line": IN_PYTHON}]})
    adapter.wait("command", "setBreakpoints")
    adapter.send("configurationDone")
    return adapter.wait("event", "stopped")


def by_gdb(tree: Path, target: str, tenv: str, work: Path) -> None:
    """Stop at the same line under `tenv gdb`, and print the frames of both languages."""
    stops = [f"break TensorFactories.cpp:{line_of_randn(tree)}", "run", "bt 3", "py-bt", "info args", "kill"]
    options = [word for stop in ("set breakpoint pending on", *stops) for word in ("--gdb-arg", f"-ex={stop}")]
    prefix = tree / ".tenv" / "envs" / target
    words = [tenv, "gdb", target, "--prefix", str(prefix), "--gdb-arg=-batch", *options, "--", "python", "main.py"]
    said(f"tenv gdb {target} --gdb-arg=-batch {' '.join(options)} -- python main.py")
    done = subprocess.run(words, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout, flush=True)
    said(f"status {done.returncode}")


def main() -> None:
    """Run both sessions."""
    parser = argparse.ArgumentParser(description="Debug torch.randn of a torch that was built with --debug-files.")
    parser.add_argument("tree", type=Path)
    parser.add_argument("target")
    parser.add_argument("--tenv", default=shutil.which("tenv") or "tenv")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="debug-torch-") as name:
        work = Path(name)
        (work / "main.py").write_text(PROGRAM, encoding="utf-8")
        by_gdb(given.tree.resolve(), given.target, given.tenv, work)
        by_vs_code(given.tree.resolve(), given.target, given.tenv, work)


if __name__ == "__main__":
    main()
