"""What a command makes of its process: any text can be printed, and a signal ends it in order."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.projects import SOURCE
from tests.support.rarely import pairs_fast


def run(*words: str, code: str = "", **variables: str) -> "subprocess.CompletedProcess[bytes]":
    program = ["-c", code] if code else ["-m", "tenv", *words]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), **variables}
    return subprocess.run([sys.executable, *program], env=environment, capture_output=True, check=False)


def test_nothing_of_the_working_folder_is_imported(tmp_path: Path) -> None:
    for name in ("yaml", "click", "json", "platformdirs", "tomli", "packaging"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'planted')!r}, 'w')")
    done = subprocess.run(
        [sys.executable, "-m", "tenv", "targets", "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert not (tmp_path / "planted").exists()


def test_tenv_starts_itself_without_the_working_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    from tenv.cli.run import program_words

    monkeypatch.setattr(sys, "argv", [str(SOURCE / "tenv" / "__main__.py")])
    assert program_words() == [sys.executable, "-P", "-m", "tenv"]
    own = [path for path in SOURCE.rglob("*.py") if 'sys.executable, "-m", "' in path.read_text()]
    assert [path.name for path in own] == ["own_distribution.py"]  # it names pip in a hint, and starts nothing


def test_a_sign_that_the_encoding_lacks_is_escaped() -> None:
    done = run("explain", "TE301", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u2026" in done.stdout


def test_a_name_that_is_no_text_is_printed_all_the_same(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"schema": 2, "hostname": {"value": "a\ud800b\udce9", "origin": "by hand"}}))
    done = run("host", "--host-report", str(report), PYTHONIOENCODING="utf-8:strict")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"a\\ud800b" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_an_interrupt_of_which_the_process_dies(number: signal.Signals) -> None:
    code = (
        "import os, signal, sys\n"
        f"signal.signal({int(number)}, signal.SIG_DFL)\n"  # the tests may run under nohup
        "from tenv import __main__\n"
        "from tenv.cli import main as program\n"
        "def main(arguments):\n"
        "    try:\n"
        f"        os.kill(os.getpid(), {int(number)})\n"
        "    except KeyboardInterrupt:\n"
        "        print('put away')\n"
        "        sys.exit(130)\n"
        "program._main = main\n"
        "sys.argv = ['tenv', 'targets']\n"
        "__main__.run()\n"
    )
    done = run(code=code)
    assert (done.returncode, done.stdout, done.stderr) == (-number, b"put away\n", b"")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_signal_that_is_ignored_stays_so() -> None:
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from tenv.cli.surroundings import ended_by_signals\n"
        "with ended_by_signals():\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "print('goes on')\n"
    )
    assert run(code=code).stdout == b"goes on\n"


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe that nobody reads")
def test_the_status_is_the_answer_also_where_nobody_reads_it_to_the_end() -> None:
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-m", "tenv", "check-driver", "cuda130", "--assume-driver", "450"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(words, env=environment, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_signal_while_a_library_is_half_loaded_ends_the_process() -> None:
    """The handler imports nothing: what it would import may need the library that is being loaded."""
    code = (
        "import os, signal, sys, types\n"
        "signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
        "from tenv.cli.surroundings import ended_by_signals\n"
        "for name in [name for name in sys.modules if name.startswith('tenv.core.process')]:\n"
        "    del sys.modules[name]\n"
        "sys.modules['dataclasses'] = types.ModuleType('dataclasses')\n"  # begun, and empty as yet
        "try:\n"
        "    with ended_by_signals():\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "except SystemExit as ended:\n"
        "    print(ended.code)\n"
    )
    done = run(code=code)
    assert (done.stdout, done.stderr) == (b"-15\n", b"")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, b"-15"), (signal.SIGINT, b"interrupted")])
def test_a_signal_in_a_callback_that_drops_it_ends_the_command_all_the_same(number: int, status: bytes) -> None:
    """Python drops what is raised in a finalizer or in the callback of a weak reference."""
    code = (
        "import os, signal, time, weakref\n"
        "signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from tenv.cli.surroundings import ended_by_signals\n"
        "class Thing: pass\n"
        "thing = Thing()\n"
        f"noted = weakref.ref(thing, lambda _: (os.kill(os.getpid(), {int(number)}), time.sleep(0.1)))\n"
        "try:\n"
        "    with ended_by_signals():\n"
        "        del thing\n"
        "        time.sleep(20)\n"
        "        print('went on')\n"
        "except SystemExit as ended:\n"
        "    print(ended.code)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    done = run(code=code)
    assert (done.stdout, done.stderr) == (status + b"\n", b"")


OUTPUTS = {
    "closed": (">&-", "Bad file descriptor"),
    "full": (">/dev/full", "No space left on device"),
    "unread": ("| exit 0", ""),
}
PRINTED = ["targets", "--version", "--help", "targets --json", "--version --json", "show --help", "completion bash"]
FAILED = ["show nothing", "show nothing --json", "activate nothing", "-C nothing targets --json", "nothing"]


def at(output: str, words: str, unbuffered: str = "") -> tuple[int, str]:
    """Run a command of the shell with one of `OUTPUTS`; return its status and its messages."""
    line = f"{shlex.quote(sys.executable)} -m tenv {words} {OUTPUTS[output][0]}; exit ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(["bash", "-c", line], env=environment, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux alone")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(("output", "words"), pairs_fast(OUTPUTS, PRINTED))
def test_what_cannot_be_written_is_an_error(output: str, words: str, unbuffered: str) -> None:
    reason = OUTPUTS[output][1]
    # A reader that goes has all that it wants.
    told = (8, f"error[storage]: standard output: {reason}\n") if reason else (0, "")
    assert at(output, words, unbuffered) == told


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux alone")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(("output", "words"), pairs_fast(OUTPUTS, FAILED))
def test_an_error_keeps_its_status_where_the_output_cannot_be_written(output: str, words: str, unbuffered: str) -> None:
    status, said = at(output, words, unbuffered)
    assert (status, said.count("error[")) == (2, 1), said
    assert "nothing" in said


def test_a_closed_input_is_empty() -> None:
    line = f"{shlex.quote(sys.executable)} -m tenv explain - <&-"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "standard input: no build is recognized in it\n"
