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
