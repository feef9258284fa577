"""How the process ends: at once, its output written and its status kept."""

import subprocess
import sys
from pathlib import Path

from tests.support.each import each
from tests.support.projects import SOURCE


def end(code: str, stdout: int = subprocess.PIPE) -> "subprocess.CompletedProcess[str]":
    """Run some lines in a Python that can import `run` and `leave`."""
    lines = f"import sys; sys.path.insert(0, {str(SOURCE)!r})\nfrom tenv.__main__ import leave, run\n{code}\n"
    return subprocess.run(
        [sys.executable, "-I", "-c", lines], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )


@each("status, told", [(0, 0), (70, 70), (0xC0000005, 5), (-15, -15)])
def test_a_status_is_kept_as_far_as_the_system_can(status: int, told: int) -> None:
    done = end(f"print('out'); print('err', file=sys.stderr); leave({status})")
    assert (done.returncode, done.stdout, done.stderr) == (told, "out\n", "err\n")


def test_nothing_is_run_at_the_end() -> None:
    assert end("import atexit; atexit.register(print, 'late'); leave(0)").stdout == ""


def test_output_that_cannot_be_written_is_no_success() -> None:
    with Path("/dev/full").open("w") as full:
        assert end("print('out'); leave(0)", full.fileno()).returncode == 1
        assert end("print('out'); leave(7)", full.fileno()).returncode == 7
    assert end("sys.stdout = None; leave(0)").returncode == 0


def test_the_program_ends_with_the_status_of_its_command() -> None:
    done = end("sys.argv = ['tenv', 'no-such-command']; run()")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no command `no-such-command`" in done.stderr
    assert end("sys.argv = ['tenv', '--version']; run()").stdout.startswith("tenv ")
