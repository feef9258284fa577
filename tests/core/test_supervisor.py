"""What a program starts ends with the process that started the program, and its status stays its own."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from tenv.core import process
from tenv.core.supervisor import _Supervisor, supervised
from tests.support.projects import SOURCE, Project, until
from tests.support.rarely import first_fast
from tests.support.source_trees import write_tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's prctl(2)")

PYTHON = sys.executable
# Each writes its id into a file: the program, its child, and one whose parent has ended, with a session of its own.
DEEP = (
    "(sh -c 'echo $$ >$0/child; exec sleep 300' $0 & "
    "exec sh -c 'setsid sh -c \"echo \\$\\$ >$0/left; exec sleep 300\" & sleep 0.1' $0 &); "
    "echo $$ >$0/program; while :; do sleep 1; done"
)


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Path]:
    """A folder for the ids of processes; those that still run are ended."""
    yield tmp_path
    for pid in ids(tmp_path).values():
        if not _gone(pid):
            os.kill(pid, signal.SIGKILL)


def ids(folder: Path) -> dict[str, int]:
    """Return the ids that processes have written."""
    texts = {name: file.read_text() for name in ("program", "child", "left") if (file := folder / name).is_file()}
    return {name: int(text) for name, text in texts.items() if text.endswith("\n")}


def start(folder: Path, call: str) -> "subprocess.Popen[bytes]":
    """Start a Python that calls a function of `process` with the words of a program that starts others."""
    words = ["/bin/sh", "-c", DEEP, str(folder)]
    code = f"from pathlib import Path; from tenv.core import process; process.{call.format(words=words)}"
    parent = subprocess.Popen([PYTHON, "-c", code], env={**os.environ, "PYTHONPATH": str(SOURCE)})
    until(lambda: len(ids(folder)) == 3)
    return parent


@pytest.mark.parametrize("number", first_fast([signal.SIGKILL, signal.SIGINT]))
def test_nothing_outlives_a_killed_parent(notes: Path, number: signal.Signals) -> None:
    parent = start(notes, "run({words!r}, family=True)")
    parent.send_signal(number)
    parent.wait(180)
    until(lambda: all(map(_gone, ids(notes).values())))


def test_the_server_of_a_cache_outlives_a_build_and_nothing_else_does(notes: Path) -> None:
    parent = start(notes, f"stream({{words!r}}, print, log=Path({str(notes / 'log')!r}))")
    parent.kill()
    parent.wait(180)
    found = ids(notes)
    until(lambda: _gone(found["program"]) and _gone(found["child"]))
    assert not _gone(found["left"])


@pytest.mark.long
def test_what_takes_too_long_ends_with_all_that_it_started(notes: Path) -> None:
    done = process.run(["/bin/sh", "-c", DEEP, str(notes)], family=True, timeout=6)
    assert isinstance(done, process.Missing)
    found = ids(notes)
    assert len(found) == 3
    until(lambda: all(map(_gone, found.values())))


@pytest.mark.parametrize(("code", "status"), [("exit 7", 7), ("kill -KILL $$", -9), ("kill -SEGV $$", -11)])
def test_the_status_is_that_of_the_program(code: str, status: int) -> None:
    done = process.run(["/bin/sh", "-c", f"cat; echo said; {code}"], family=True, text="heard ")
    assert done == process.Completed(status, "heard said\n", "")


def test_signals_that_the_caller_ignores_stay_ignored(tmp_path: Path) -> None:
    """`nohup tenv build`, and a job in the background of a script: a closed terminal ended it."""
    program = f"echo >{tmp_path}/begun; cat; kill -HUP $$; echo on"
    line = f"trap '' HUP INT; exec {shlex.join(supervised(['/bin/sh', '-c', program]))}"
    with subprocess.Popen(["/bin/sh", "-c", line], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        until((tmp_path / "begun").exists)
        child.send_signal(signal.SIGHUP)
        assert (child.communicate("hung up ")[0], child.returncode) == ("hung up on\n", 0)


def test_an_ended_program_leaves_its_daemons_alone(notes: Path) -> None:
    line = DEEP.rpartition("; while")[0] + "; while [ ! -s $0/left ] || [ ! -s $0/child ]; do sleep 0.1; done"
    done = subprocess.run(supervised(["/bin/sh", "-c", line, str(notes)]), check=True, stdout=subprocess.DEVNULL)
    assert done.returncode == 0
    assert not _gone(ids(notes)["left"])


@pytest.mark.long
def test_what_a_build_backend_starts_ends_with_a_killed_create(project: Project, notes: Path) -> None:
    project.edit('native = "*"\n', "")
    tree = write_tree(project.folder / "vision")
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision" }')
    project.ok("lock", "tiny")
    backend = tree / "backend" / "own_backend.py"
    words = ["/bin/sh", "-c", DEEP, str(notes)]
    backend.write_text(
        f"import subprocess\nsubprocess.run({words!r}, stdout=subprocess.DEVNULL)\n{backend.read_text()}"
    )
    child = project.start("create", "tiny", "--locked")
    until(lambda: len(ids(notes)) == 3)
    child.kill()
    until(lambda: all(map(_gone, ids(notes).values())))


@pytest.mark.long
def test_an_interrupted_build_has_the_time_to_put_its_files_away(notes: Path) -> None:
    """Ninja waits for its compilers, and removes what they have half-written: it has longer than other programs."""
    # The signal comes once to the group and once by the supervisor; a trap would run again meanwhile.
    put_away = f"trap '' TERM; sleep 3.5; echo away >{notes}/away; echo said; exit 1"
    words = ["/bin/sh", "-c", f'trap "{put_away}" TERM; echo $$ >{notes}/program; while :; do sleep 0.1; done']
    code = f"from pathlib import Path; from tenv.core import process; process.stream({words!r}, print, log=Path('log'))"
    parent = subprocess.Popen([PYTHON, "-c", code], env={**os.environ, "PYTHONPATH": str(SOURCE)}, cwd=notes)
    until(lambda: "program" in ids(notes))
    parent.send_signal(signal.SIGINT)
    parent.wait(180)
    assert (notes / "away").read_text() == "away\n"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_signal_beside_the_start_of_the_program_leaves_the_callers_group_alone(when: str) -> None:
    """The id of a program that is not yet known is 0, and a signal to 0 ended the script that had called tenv."""
    fork = {"before": "stop(); return fork()", "after": "pid = fork(); pid and stop(); return pid"}[when]
    code = (
        "import os, signal, sys\n"
        "from tenv.core import supervisor\n"
        "fork, stop = os.fork, lambda: os.kill(os.getpid(), signal.SIGTERM)\n"
        f"def slow():\n    {fork}\n"
        "os.fork = slow\n"
        "supervisor._main(str(os.getppid()), 'none', '/bin/sleep', '600')\n"
    )
    script = ["/bin/sh", "-c", '"$0" -c "$1"; echo "the script goes on: $?"', PYTHON, code]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        script, env=environment, capture_output=True, text=True, check=False, timeout=180, start_new_session=True
    )
    assert done.stdout == "the script goes on: 143\n", done.stderr


def test_a_session_of_outside_the_namespace_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getsid", lambda _: 0)
    monkeypatch.setattr(os, "listdir", lambda _: ["10"])
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: f"10 (cc 1) S {os.getpid()} 1 0 0")
    assert [[*_Supervisor(1, daemons=daemons)._below()] for daemons in (False, True)] == [[10], [10]]


def test_a_process_whose_parents_end_during_a_look_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Process ids start anew at their limit, so that a child can come before its parent in /proc."""
    files = {"10": f"10 (cc 1) S 30 1 {os.getsid(0)} 0", "30": f"30 (uv) Z {os.getpid()} 1 {os.getsid(0)} 0"}
    monkeypatch.setattr(os, "listdir", lambda _: [*files])
    monkeypatch.setattr(Path, "read_text", lambda path, **_: files[path.parent.name])
    for daemons in (False, True):
        assert list(_Supervisor(1, daemons=daemons)._below()) == [10]
    del files["30"]  # it is nobody's child in this look, and the supervisor's in the next
    supervisor = _Supervisor(1, daemons=False)
    supervisor._child, supervisor._ends_at = 30, time.monotonic()
    killed: list[int] = []
    monkeypatch.setattr(os, "waitpid", mock.Mock(side_effect=[(30, 15), *[(0, 0)] * 9]))

    def kill(pid: int, _: signal.Signals) -> None:
        killed.append(pid)
        files.clear()

    monkeypatch.setattr(os, "kill", kill)

    def wait(*_: object) -> None:
        files.update({"10": f"10 (cc 1) S {os.getpid()} 1 {os.getsid(0)} 0"} if not killed else {})

    monkeypatch.setattr(signal, "sigtimedwait", wait)
    assert (supervisor._wait(), killed) == (15, [10])
