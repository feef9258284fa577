"""What is said of a program that failed, where the table knows no cause."""

import os
import sys
from pathlib import Path

import pytest

from tenv.builds.logged_run import Ran, look_up, run_logged
from tenv.core.progress import Silent
from tenv.facts.tables import load_facts
from tests.support.each import each

LOG = Path("configure.log")


class Counted(Silent):
    """Progress that keeps its numbers."""

    total = done = 0

    def resize(self, total: int) -> None:
        self.total = total

    def advance(self, count: int = 1) -> None:
        self.done += count


def finding(*lines: str, status: int = 1) -> tuple[str, str]:
    found = look_up(Ran(status, lines, 1.0, ""), "TE932", "the configuration", LOG, load_facts().build_failures)
    assert (found.code, found.subject) == ("TE932", "the configuration")
    return found.message, found.evidence


@each("lines", [(), ("-- Found Backtrace", "", "-- headers outputs:", "")])
def test_a_program_that_ends_without_an_error_may_have_been_killed(lines: tuple[str, ...]) -> None:
    message, evidence = finding(*lines)
    assert "printed no error" in message
    assert evidence == f"{LOG}: the last lines: {' | '.join(line for line in lines if line)}"


def test_an_error_that_is_not_known_is_shown_with_its_line() -> None:
    message, evidence = finding("-- Found Backtrace", "odd: error: nobody knows this", "-- more")
    assert "does not know the cause" in message
    assert evidence == f"{LOG}: line 2: odd: error: nobody knows this"


def test_a_signal_is_named() -> None:
    assert "was ended by signal 9" in finding("-- Found Backtrace", status=-9)[0]


def test_a_cause_in_the_sources_of_pytorch_is_none_of_an_extension() -> None:
    lines = ("[1/2] torch/CMakeFiles/a.o", "a.cpp:1:10: fatal error: torch/own.h: No such file or directory")
    table = load_facts().build_failures
    own, other = (look_up(Ran(1, lines, 1.0, ""), "TE961", "ops", LOG, table, of=of) for of in ("pytorch", "ops"))
    assert "git checkout" in own.fix
    assert "git checkout" not in other.fix


@pytest.mark.skipif(sys.platform == "win32", reason="the program is of a shell")
def test_the_status_of_a_ninja_below_pip_is_counted(tmp_path: Path) -> None:
    counted = Counted()
    script = "printf '  [1/3] a\\n  [3/3] b\\n'"
    words = ["sh", "-c", script]
    run_logged(words, tmp_path / "log", environ=os.environ, folder=tmp_path, progress=counted, title="compiling")
    assert (counted.total, counted.done) == (3, 3)


@pytest.mark.skipif(sys.platform == "win32", reason="the program is of a shell")
def test_a_line_has_its_number_in_the_log(tmp_path: Path) -> None:
    """The log starts with the command, and the second program of a step appends to it."""
    log = tmp_path / "log"
    for again, script in ((False, "echo one"), (True, "# two\necho fine; echo 'a.c:1: error: odd'; exit 1")):
        words = ["sh", "-c", script]
        ran = run_logged(
            words, log, environ=os.environ, folder=tmp_path, progress=Silent(), title="compiling", again=again
        )
    found = look_up(ran, "TE961", "ops", log, load_facts().build_failures)
    number = next(i for i, line in enumerate(log.read_text().splitlines(), 1) if line == "a.c:1: error: odd")
    assert f"{log}: line {number}: a.c:1: error: odd" in found.evidence
