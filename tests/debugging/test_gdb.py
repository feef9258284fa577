"""`tenv gdb`: what is started, what is reported before, and gdb itself where this machine has one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenv.debugging.python_processes import read_rights, starting
from tenv.project.context import Context
from tenv.verbs import gdb
from tenv.verbs.run import with_feature
from tests.support.each import each
from tests.support.projects import Project, call

SCRIPT = """\
import os, signal
def inner():
    os.kill(os.getpid(), signal.SIGTRAP)
def outer():
    inner()
outer()
print("after", os.environ.get("SHELL"))
"""


@pytest.fixture
def with_gdb(created: Project) -> Project:
    """The project, with a program `gdb` that prints its words, and a PATH of its own."""
    folder = created.folder / "bin"
    folder.mkdir()
    for name in ("gdb", "pystack"):
        (folder / name).write_text('#!/bin/sh\nprintf "%s\\n" "$@"; echo "SHELL=$SHELL TARGET=$TENV_TARGET"; exit 7\n')
        (folder / name).chmod(0o755)
    (created.folder / "t.py").write_text(SCRIPT)
    return created


def run(project: Project, *words: str, **environment: str) -> tuple[int, list[str], str]:
    path = f"{project.folder / 'bin'}:{os.environ['PATH']}"
    ended = project.run("gdb", *words, environment={"PATH": path, "SHELL": "/bin/zsh", **environment})
    return ended.status, ended.out.splitlines(), ended.err


def test_the_environments_python_is_started_under_gdb(with_gdb: Project) -> None:
    status, lines, err = run(with_gdb, "tiny", "--gdb-arg", "-tui", "--", "python", "t.py", "--", "a b")
    assert (status, err.count("error")) == (7, 0)
    at = lines.index("--args")
    python = f"{with_gdb.prefix}/bin/python"
    assert lines[at - 1 : at + 7] == ["-tui", "--args", python, "-X", "frozen_modules=off", "t.py", "--", "a b"]
    assert lines[-1] == "SHELL=/bin/sh TARGET=tiny"
    assert "set environment SHELL /bin/zsh" in lines
    assert f"add-auto-load-safe-path {with_gdb.prefix}" in lines
    assert "set breakpoint pending on" in lines
    signals = next(Path(line.split()[1]) for line in lines if line.endswith("signals.gdb"))
    assert "handle SIGCHLD nostop noprint pass" in signals.read_text()  # typed, gdb prints a table of it
    assert not [line for line in lines if line.startswith("handle ")]


def test_a_console_script_is_debugged_by_its_interpreter(with_gdb: Project) -> None:
    _, lines, _ = run(with_gdb, "--", "beta")
    at = lines.index("--args")
    assert lines[at + 1].startswith(str(with_gdb.prefix / "bin" / "python"))
    assert lines[at + 4] == str(with_gdb.prefix / "bin" / "beta")


def test_with_json_nothing_is_started(with_gdb: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{with_gdb.folder / 'bin'}:{os.environ['PATH']}")
    data = with_gdb.ok("gdb", "tiny", "--json", "--", "python", "t.py").data
    assert data["target"] == "tiny"
    assert data["command"][0] == str(with_gdb.folder / "bin" / "gdb")
    assert data["command"][-2:] == ["frozen_modules=off", "t.py"]
    assert data["environment"]["set"]["TENV_TARGET"] == "tiny"


def test_run_and_shell_print_what_they_would_start(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    data = created.ok("run", "--json", "tiny", "--", "beta", "x y").data
    assert data["command"] == [str(created.prefix / "bin" / "beta"), "x y"]
    assert data["environment"]["set"]["VIRTUAL_ENV"] == str(created.prefix)
    monkeypatch.setenv("PYTHONHOME", "/x")
    assert created.ok("run", "--json", "tiny", "true").data["environment"]["unset"] == ["PYTHONHOME"]
    monkeypatch.setenv("SHELL", "/bin/bash")
    data = created.ok("shell", "tiny", "--json").data
    assert data["command"][1] == "--rcfile"
    ((file, text),) = data["files"].items()
    assert file == data["command"][2]
    assert f"{created.prefix}/tenv-meta/activate.sh" in text
    assert not Path(file).parent.exists()


@pytest.mark.long
def test_what_goes_wrong_later_is_reported_before(with_gdb: Project) -> None:
    (with_gdb.folder / "torch").mkdir()
    (with_gdb.folder / "torch" / "__init__.py").write_text("")
    _, _, err = run(with_gdb, "tiny", "--", "python", "t.py")
    assert f"warning: `import torch` takes the sources in {with_gdb.folder / 'torch'}" in err
    subprocess.run([with_gdb.prefix / "bin/python", "-m", "venv", "--without-pip", ".venv"], check=True)
    _, _, err = run(with_gdb, "tiny", "--", ".venv/bin/python", "-c", "1")
    assert "was made from the environment of tiny and has none of its packages" in err


@pytest.mark.long
def test_the_script_of_the_checkout_is_loaded(with_gdb: Project) -> None:
    script = with_gdb.folder / "tools" / "gdb" / "pytorch-gdb.py"
    script.parent.mkdir(parents=True)
    script.write_text("")
    assert f"source {script}" not in run(with_gdb, "--", "python")[1]
    (with_gdb.folder / "CMakeLists.txt").write_text("project(Torch CXX C)\n")
    assert f"source {script}" in run(with_gdb, "--", "python")[1]


@each(
    "words, status, said",
    [
        (("tiny", "--", "no-such-program"), 2, "no program `no-such-program`"),
        (("tiny", "python"), 2, "`python` stands before `--`"),
        (("tiny", "--attach", "1", "--", "x"), 2, "`--attach` and a COMMAND exclude each other"),
        (("tiny", "--attach", "99999999"), 2, "process 99999999 does not exist"),
        (("tiny", "--attach", "no-such-command-line"), 2, "no Python process has `no-such-command-line`"),
        (("tiny", "--cuda"), 4, "no cuda-gdb in the environment"),
        (("nosuch",), 2, "there is no target `nosuch`"),
    ],
)
def test_what_can_t_be_debugged(
    with_gdb: Project, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], status: int, said: str
) -> None:
    monkeypatch.setenv("PATH", f"{with_gdb.folder / 'bin'}:{os.environ['PATH']}")
    ended = call("gdb", *words)
    assert (ended.status, said in ended.err) == (status, True), ended.err


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.long
def test_a_process_is_found_by_name_and_the_others_are_named(with_gdb: Project) -> None:
    code = "import os, sys; os.fork() or (sys.stdin.read(), os._exit(0)); print(flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", code, "a-mark-of-gdb"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        status, lines, err = run(with_gdb, "tiny", "--attach", "a-mark-of-gdb")
        child.communicate()
    if status == 4:
        assert "no debugger can work here" in err
        return
    assert (status, lines[-3:-1]) == (7, ["-p", str(child.pid)])
    assert "a worker, forked from the program" in err
    assert f"attaching to process {child.pid}: the program" in err


@pytest.mark.long
@pytest.mark.skipif(shutil.which("gdb") is None, reason="there is no gdb on this machine")
@pytest.mark.skipif(starting(read_rights()) is not None, reason="this machine forbids tracing")
def test_gdb_itself_stops_in_the_script_and_shows_its_frames(
    created: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (created.folder / "t.py").write_text(SCRIPT)
    words = [word for text in ("run", "py-bt", "continue") for word in ("--gdb-arg", "-ex", "--gdb-arg", text)]
    ended = created.run("gdb", "tiny", "--gdb-arg", "-batch", *words, "--", "python", "t.py")
    assert "received signal SIGTRAP" in ended.out, ended.err
    assert f"after {os.environ.get('SHELL')}" in ended.out
    if "gdb can't read the Python frames" in ended.err:
        assert "py-bt needs" in ended.err
    else:
        assert ended.out.index("in inner") < ended.out.index("in outer")


def test_a_feature_with_cuda_gdb_or_pystack_is_named(with_gdb: Project) -> None:
    with_gdb.manifest.write_text(
        with_gdb.manifest.read_text()
        + '[feature.debug.pypi-dependencies]\npystack = "*"\n'
        + '[feature.cuda-gdb.archives]\ncuda_gdb = { product = "cuda", version = "13.0.2" }\n'
    )
    assert "`tenv create tiny --with cuda-gdb` installs it" in run(with_gdb, "tiny", "--cuda")[2]
    assert with_feature(Context(), "tiny", "pystack") == "`tenv create tiny --with debug`"


def test_the_script_that_gdb_sources_is_in_the_package() -> None:
    assert gdb._PY_BT.is_file()
