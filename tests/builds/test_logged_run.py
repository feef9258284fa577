"""What is said of a program that failed, where the table knows no cause."""

from pathlib import Path

from tenv.builds.logged_run import Ran, look_up
from tenv.facts.tables import load_facts
from tests.support.each import each

LOG = Path("configure.log")


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
