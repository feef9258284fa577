"""Programs that work for tenv: what they say is had, and they end with it."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tenv.core import process
from tenv.core.missing import Missing, ReasonKind
from tests.support.projects import SOURCE, until

PYTHON = sys.executable


def test_an_error_of_a_look_at_a_program_ends_it_at_once(tmp_path: Path) -> None:
    noted = tmp_path / "pid"

    class RefusedError(Exception):
        pass

    def look(number: int) -> None:
        if noted.is_file() and noted.read_text().endswith("\n"):
            raise RefusedError

    with pytest.raises(RefusedError):
        process.watch([PYTHON, "-c", CHILD, str(noted)], lambda _: None, on_tick=look)
    assert ended(int(noted.read_text()))


def test_find_gives_the_absolute_path_of_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "own"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert process.find("own", "bin") == str(program)
    assert process.find("own", "/nowhere") is None


def test_run_captures_what_is_said_and_how_it_ended() -> None:
    code = "import sys; print(input().upper()); print('oh', file=sys.stderr); sys.exit(3)"
    done = process.run([PYTHON, "-c", code], text="hey\n")
    assert done == process.Completed(3, "HEY\n", "oh\n")


def test_run_gives_nothing_to_read_and_bears_bytes_that_are_no_text() -> None:
    done = process.run([PYTHON, "-c", r"import sys; sys.stdout.buffer.write(b'\xff' + sys.stdin.buffer.read())"])
    assert isinstance(done, process.Completed)
    assert done.stdout == "\ufffd"


def test_run_tells_why_there_is_no_answer(tmp_path: Path) -> None:
    missing = process.run([str(tmp_path / "nothing")])
    reason = f"{tmp_path / 'nothing'} can't be started: No such file or directory"
    assert missing == Missing(reason, ReasonKind.FAILED)
    slow = process.run([PYTHON, "-c", "import time; time.sleep(60)"], timeout=0.2)
    assert slow == Missing(f"{PYTHON} gave no answer within 0.2 s", ReasonKind.TIMEOUT)


def test_run_hands_on_the_environment_and_the_folder(tmp_path: Path) -> None:
    code = "import os; print(os.environ.get('A'), os.environ.get('HOME'), os.getcwd())"
    done = process.run([PYTHON, "-c", code], environment={"A": "1"}, folder=tmp_path)
    assert isinstance(done, process.Completed)
    assert done.stdout == f"1 None {tmp_path}\n"


def test_watch_hands_over_what_is_said_while_it_is_said(tmp_path: Path) -> None:
    """The program ends only when what it says was heard."""
    file = tmp_path / "heard"
    code = f"""
import pathlib, sys, time
print('one', file=sys.stderr, flush=True)
sys.stdin.read()
while not pathlib.Path({str(file)!r}).exists():
    time.sleep(0.01)
sys.exit(7)
"""
    heard: list[str] = []

    def hear(text: str) -> None:
        heard.append(text)
        file.touch()

    done = process.watch([PYTHON, "-c", code], hear)
    assert "".join(heard).split() == ["one"]
    assert (done.status, done.stderr.split()) == (7, ["one"])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo terminals of this kind")
def test_watch_shows_a_wide_terminal_and_takes_its_colours_out() -> None:
    code = (
        "import os, sys; print(sys.stderr.isatty(), os.get_terminal_size(2).columns, file=sys.stderr); "
        r"print('\x1b[1;31mred\x1b[0m \x1b]8;;x\x07link\x1b[2K', file=sys.stderr)"
    )
    done = process.watch([PYTHON, "-c", code], lambda _: None)
    assert done.stderr.split() == ["True", "200", "red", "link"]


def test_watch_bears_a_program_that_reads_nothing() -> None:
    done = process.watch([PYTHON, "-c", "pass"], lambda _: None, text="x" * 1_000_000)
    assert done.status == 0


def test_watch_ends_the_program_when_the_listener_fails() -> None:
    def fail(_: str) -> None:
        raise KeyboardInterrupt

    code = "import os, sys, time; print(os.getpid(), file=sys.stderr, flush=True); time.sleep(60)"
    pids: list[int] = []

    def note(text: str) -> None:
        pids.append(int(text))
        fail(text)

    with pytest.raises(KeyboardInterrupt):
        process.watch([PYTHON, "-c", code], note)
    assert not Path(f"/proc/{pids[0]}").exists()


def test_spawn_returns_the_status_of_the_program() -> None:
    assert process.spawn([PYTHON, "-c", "import sys; sys.exit(5)"], os.environ) == 5


@pytest.mark.skipif(sys.platform == "win32", reason="Windows can't replace a process")
def test_replace_becomes_the_program() -> None:
    code = (
        "import os; from tenv.core import replacement; print(os.getpid(), flush=True); "
        f"replacement.replace([{PYTHON!r}, '-c', 'import os, sys; print(os.getpid()); sys.exit(9)'], os.environ)"
    )
    done = subprocess.run(
        [PYTHON, "-c", code], env={**os.environ, "PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=False
    )
    before, after = done.stdout.split()
    assert (before, done.returncode) == (after, 9)


CHILD = "import os, sys, time; print(os.getpid(), file=open(sys.argv[1], 'w'), flush=True); time.sleep(60)"
STARTERS = {
    "run": f"process.run([{PYTHON!r}, '-c', {CHILD!r}, sys.argv[1]])",
    "watch": f"process.watch([{PYTHON!r}, '-c', {CHILD!r}, sys.argv[1]], lambda _: None)",
}


@pytest.mark.skipif(sys.platform != "linux", reason="the death of a parent is a signal on Linux alone")
@pytest.mark.parametrize("starter", STARTERS)
def test_a_child_does_not_outlive_a_killed_parent(tmp_path: Path, starter: str) -> None:
    noted = tmp_path / "pid"
    parent = subprocess.Popen(
        [PYTHON, "-c", f"import sys; from tenv.core import process; {STARTERS[starter]}", str(noted)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    until(lambda: noted.is_file() and noted.read_text().endswith("\n"))
    child = int(noted.read_text())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until(lambda: _gone(child))
    assert _gone(child)


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter where it ends between the opening and the reading
        return True


def test_programs_can_be_started_from_threads_at_once() -> None:
    answers: list[process.Completed | process.Missing] = []
    threads = [
        threading.Thread(target=lambda: answers.append(process.run([PYTHON, "-c", "print(1)"]))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.stdout for answer in answers if isinstance(answer, process.Completed)] == ["1\n"] * 8


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_what_a_script_waits_for_ends_with_it(tmp_path: Path) -> None:
    script, note = tmp_path / "nvcc", tmp_path / "note"
    script.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {note}\nwait\n")
    script.chmod(0o755)
    done = process.run([str(script)], timeout=1, bound=False)
    assert isinstance(done, process.Missing)
    assert done.reason == f"{script} gave no answer within 1 s"
    until(lambda: ended(int(note.read_text())))


def ended(number: int) -> bool:
    """Tell whether a process has ended; one whose parent has not asked for its status yet has."""
    try:
        return ") Z " in Path(f"/proc/{number}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.skipif(sys.platform != "linux", reason="only a bound child is forked by Python")
@pytest.mark.parametrize("start", ["run(['/bin/true'])", "watch(['/bin/true'], print)"])
def test_an_interrupt_while_a_program_is_started_is_not_lost(start: str) -> None:
    """Python drops what is raised in the hooks of a fork."""
    code = (
        "import os, signal\n"
        "from tenv.core import process\n"
        "os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "try:\n"
        f"    process.{start}\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    done = subprocess.run(
        [PYTHON, "-c", code], env={**os.environ, "PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_program_that_takes_our_place_ends_when_nobody_reads_it() -> None:
    words = ["/bin/sh", "-c", "kill -PIPE $$; echo on"]
    code = f"import os; from tenv.core import replacement; replacement.replace({words!r}, os.environ)"
    done = subprocess.run(
        [PYTHON, "-c", code], env={**os.environ, "PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGPIPE, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="what a shell closes")
@pytest.mark.parametrize("closed", [1, 2])
def test_a_program_takes_our_place_where_an_output_is_closed(closed: int) -> None:
    code = "import os; from tenv.core import replacement; replacement.replace(['/bin/sh', '-c', 'exit 5'], os.environ)"
    words = ["/bin/sh", "-c", f'exec "$@" {closed}>&-', "sh", PYTHON, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    assert subprocess.run(words, env=environment, capture_output=True, check=False).returncode == 5


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe is used there anyway")
def test_a_program_is_watched_where_no_terminal_can_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    import pty

    def full() -> tuple[int, int]:
        raise OSError("out of pty devices")

    monkeypatch.setattr(pty, "openpty", full)
    heard: list[str] = []
    done = process.watch(["/bin/sh", "-c", "read word; echo $word >&2; exit 3"], heard.append, text="said\n")
    assert (done.status, "".join(heard), done.stderr) == (3, "said\n", "said\n")


def test_a_quotation_that_does_not_end_is_one_word() -> None:
    assert process.command_words("ccache 'my gcc' -m64") == ["ccache", "my gcc", "-m64"]
    assert process.command_words("gcc 'x") == ["gcc 'x"]
