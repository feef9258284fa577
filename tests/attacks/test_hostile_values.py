"""Values that no user means, in every place that takes one: each command ends with a code of its own, never a bug."""

import json
import os
from pathlib import Path

import pytest

from tests.support.projects import Project, call
from tests.support.rarely import first_fast

DIGITS = "9" * 5000
"""More digits than Python reads as a number."""

LONG = "x" * 5000
"""More characters than the name of a file may have."""

FINE = frozenset((0, 1, 2, 3, 4, 5, 6, 7, 8))


def fault_of(*words: str) -> str:
    """Return how a command ended, where that is a bug of tenv; empty otherwise."""
    ended = call(*words)
    bad = ended.status not in FINE or "Traceback" in ended.err or "error[bug]" in ended.err
    return f"{[word[:40] for word in words]}: {ended.status}: {ended.err[:300]}" if bad else ""


WORDS: tuple[tuple[str, ...], ...] = (
    *(
        (command, value)
        for command in ("show", "init", "create", "lock", "run", "env", "tree")
        for value in (DIGITS, LONG, "a\nb")
    ),
    *(("create", "tiny", "--prefix", value) for value in (LONG, f"/{LONG}/x", "a\nb", "/proc/self/x", "/dev/null/x")),
    *(("create", "tiny", "--dry-run", "--python", value) for value in (DIGITS, f"3.{DIGITS}", LONG, "/dev/null", "/")),
    *(("create", "tiny", "--dry-run", "--lock-file", value) for value in (LONG, "/dev/null", "/", "/proc/self/mem")),
    *(
        ("check-driver", "--assume-driver", value)
        for value in (DIGITS, f"{DIGITS}.1", "-1", LONG, "\u0661\u0662\u0663")
    ),
    *(("check", "cpu", "--assume-gpu", value) for value in (DIGITS, LONG, "", "sm_" + DIGITS)),
    *(("host", "--host-report", value) for value in (LONG, "/dev/null", "/", "-1")),
    *(("explain", value) for value in (DIGITS, LONG, "TE" + DIGITS, "../../etc/passwd")),
    *(("explain", "--log", value) for value in (LONG, "/dev/null", "/")),
    *(("config", "unpack-limit", value) for value in (DIGITS, "-1", "1e999", "nan", LONG)),
    *(("config", f"mirrors.{value}", "https://a.example") for value in (LONG, "a\nb", "https://[::1")),
    *(("packages", "tiny", value) for value in ("(", "(a+)+" * 50, LONG)),
    *(
        ("export", form, "tiny", "--base", value)
        for form in ("dockerfile", "apptainer")
        for value in (DIGITS, LONG, "a\nb")
    ),
    *(("export", "pixi", "tiny", "--python", value) for value in (DIGITS, f"3.{DIGITS}", LONG)),
    *(("export", value, "tiny") for value in (LONG, DIGITS)),
    *(("import", value) for value in (LONG, "/dev/null", "/", "/proc/self/mem")),
    *(("lock", "tiny", "--exclude-newer", value) for value in (DIGITS, "9999-99-99", "0000-00-00T00:00:00Z")),
    *(("diff", "tiny", value) for value in (LONG, "/dev/null", "/")),
    *(("audit", value) for value in (LONG, "/dev/null", "/proc/self/mem")),
    *(("facts", value) for value in (LONG, DIGITS)),
    *(("add", "tiny", value, "--no-create") for value in (f"alpha=={DIGITS}", LONG, "alpha @ file:///" + LONG, "a\nb")),
    ("gdb", "tiny", "--attach", DIGITS),
    ("rollback", LONG),
    ("remove", LONG, "--yes"),
)


def test_words_of_the_command_line(project: Project) -> None:
    project.ok("lock", "tiny")
    faults = [fault for words in WORDS if (fault := fault_of(*words))]
    assert faults == []


SETTINGS = (
    "[[[",
    "\0",
    f"sync = {DIGITS}",
    f'default = "{LONG}"',
    "default = 1979-05-27T07:32:00Z",
    "sync = " + "[" * 3000,
    "a" * (1 << 20),
    "<<<<<<< ours\nsync = true\n=======\nsync = false\n>>>>>>> theirs\n",
    f"unpack-limit = {DIGITS}",
    f'unpack-limit = "{DIGITS}"',
    "[mirrors]\n" + f'"{LONG}" = ["{LONG}"]',
)
READERS = (
    ("targets",),
    ("list",),
    ("config",),
    ("info",),
    ("show", "tiny"),
    ("run", "--", "true"),
    ("lock", "--check"),
)


@pytest.mark.parametrize(
    ("place", "every"), first_fast([("project", False), ("project", True), ("user", False)], several=True)
)
def test_files_of_settings_that_are_none(project: Project, place: str, every: bool) -> None:
    project.ok("lock", "tiny")
    file = project.folder / "tenv.toml"
    if place == "user":
        file = Path(os.environ["XDG_CONFIG_HOME"]) / "tenv" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    faults = []
    for number, text in enumerate(SETTINGS):
        file.write_text(text)
        readers = READERS if every else (READERS[number % len(READERS)], ("list",))  # they have one reader
        faults += [f"{text[:30]!r}: {fault}" for words in readers if (fault := fault_of(*words))]
    assert faults == []
    file.write_text("[[[")
    said = project.fails(2, "usage", "config")  # settings are no manifest, whose faults end with 3
    assert f"{file}: not TOML" in said


REPORTS = (
    f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {DIGITS}.1",
    f"| NVIDIA-SMI {DIGITS}.1    Driver Version: {DIGITS}.1   CUDA Version: {DIGITS}.1 |",
    f"Cuda compilation tools, release {DIGITS}.1, V{DIGITS}.1.1",
    f"GPU 0: NVIDIA GeForce RTX {DIGITS}\nDriver Version: 535.1",
    f"torch=={DIGITS}\nnvidia-cuda-runtime=={DIGITS}\nnumpy=={DIGITS}\n",
    f"nvcc version ..... {DIGITS}.1\ntorch version .... {DIGITS}.1",
    f"Device 0: A, compute capability {DIGITS}.1\nDriver Version: 535.1.1",
    json.dumps({"schema": 2, "driver": {"value": f"{DIGITS}.1", "origin": "x"}}),
    '{"schema": 2, "memory": {"value": 1e999, "origin": "x"}}',
    f'{{"schema": {DIGITS}}}',
    "[" * 100_000,
    "\0" * 1000,
    "NaN",
)


def test_reports_with_numbers_that_are_none(project: Project) -> None:
    file = project.folder / "report"
    faults = []
    for text in REPORTS:
        file.write_text(text)
        for words in (("host",), ("check-driver", "cuda130")):
            faults += [f"{text[:30]!r}: {fault}"] if (fault := fault_of(*words, "--host-report", str(file))) else []
    assert faults == []


LOGS = (
    f"[{DIGITS}/{DIGITS}] Building CXX object a.o\na.cpp:{DIGITS}:1: error: x",
    f"CMake Error at CMakeLists.txt:{DIGITS} (message):\n  x\n\n",
    f'Traceback (most recent call last):\n  File "a.py", line {DIGITS}, in x\nValueError: x',
    f"a.cpp({DIGITS}): error C1: x",
    "\0" * 1000,
)


def test_logs_with_numbers_that_are_none(project: Project) -> None:
    file = project.folder / "log"
    faults = []
    for text in LOGS:
        file.write_text(text)
        faults += [fault] if (fault := fault_of("explain", "--log", str(file))) else []
        assert call("explain", "--log", str(file)).status == 0
    assert faults == []


VARIABLES = {
    "TENV_UNPACK_LIMIT": (DIGITS, "nan", ""),
    "TENV_LOCKED": (DIGITS, LONG),
    "TENV_OFFLINE": ("maybe",),
    "TENV_CACHE_DIR": (f"/{LONG}", "/dev/null"),
    "TENV_SAFE_FOLDERS": (f"/{LONG}", "::"),
    "TENV_PREFIX": (f"/{LONG}", "/dev/null"),
    "TENV_LINK_MODE": (DIGITS,),
    "COLUMNS": (DIGITS, "-1", "0"),
    "MAX_JOBS": (DIGITS, "-1"),
    "UV_HTTP_TIMEOUT": (DIGITS, "nan"),
    "UV_INDEX": (f"https://{LONG}", "https://[::1"),
    "UV_DEFAULT_INDEX": ("https://[::1", LONG),
    "PATH": ("", f"/{LONG}", "\udcff"),
    "HOME": ("/dev/null", f"/{LONG}"),
    "CUDA_HOME": (f"/{LONG}", "/dev/null"),
}


@pytest.mark.long
def test_values_of_variables(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.ok("lock", "tiny")
    faults = []
    for name, values in VARIABLES.items():
        for value in values:
            with monkeypatch.context() as patch:
                patch.setenv(name, value)
                for words in (("info",), ("create", "tiny", "--dry-run")):
                    faults += [f"{name}={value[:20]!r}: {fault}"] if (fault := fault_of(*words)) else []
    assert faults == []


def test_a_fault_of_a_file_leaves_the_envelope_of_json(project: Project) -> None:
    project.ok("lock", "tiny")
    for words in (("diff", "tiny", LONG), ("create", "tiny", "--dry-run", "--prefix", LONG)):
        ended = call(*words, "--json")
        assert ended.status == 8
        assert json.loads(ended.out)["error"]["code"] == "storage"
