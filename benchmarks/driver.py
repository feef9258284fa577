"""Measure `tenv check-driver` on a machine with a driver of NVIDIA's, in turns with the bare interpreter and with NVML.

    python benchmarks/driver.py --rounds 20

The aim is 2.8 times `python -c pass`, plus what NVML takes: a process that loads the driver's library and asks it for
the driver's version and the first GPU, less one that only loads `ctypes`.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from page import lines
from sides import Row, Run, measure, run

TENV = Path(sys.executable).with_name("tenv")
ALONE = "import ctypes"
ASKED = """\
import ctypes
nvml, text, handle = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.create_string_buffer(96), ctypes.c_void_p()
for name, *words in (
    ("nvmlInit_v2",),
    ("nvmlSystemGetDriverVersion", text, 96),
    ("nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(handle)),
    ("nvmlDeviceGetName", handle, text, 96),
):
    assert getattr(nvml, name)(*words) == 0, name
"""
BARE = 2.8


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure check-driver beside a driver.")
    parser.add_argument("--rounds", type=int, default=20, help="rounds of each side")
    parser.add_argument("--target", default="cuda118", help="a target that this driver runs, which a command names")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tenv-bench-") as folder:
        here = Path(folder)
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TENV_"))}
        environment = {**plain, "XDG_DATA_HOME": str(here / "data"), "PWD": folder}

        def python(code: str, *options: str) -> Run:
            return run([sys.executable, *options, "-c", code], here, environment)

        def nvml() -> Run:
            alone, asked = python(ALONE, "-I", "-S"), python(ASKED, "-I", "-S")
            return Run(asked.seconds - alone.seconds, asked.cpu - alone.cpu, asked.memory)

        def allowed() -> Run:
            bare = python("pass")
            return Run(BARE * bare.seconds, BARE * bare.cpu, bare.memory) + nvml()

        def row(*words: str) -> Row:
            theirs = {f"{BARE} times `python -c pass`, and NVML": allowed, "`python -c pass`": lambda: python("pass")}
            ours = [TENV, "check-driver", *words]
            return Row(f"`tenv {' '.join(ours[1:])}`", lambda: run(ours, here, environment), theirs, 1.0, given.rounds)

        for line in lines(measure(one) for one in (row(), row(given.target), row("--json"))):
            print(line, flush=True)


if __name__ == "__main__":
    main()
