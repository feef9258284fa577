"""Each guard stops something: without it, an attack of the tests succeeds."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.guards import GUARDS

ROOT = Path(__file__).parent.parent.parent
Attacker = subprocess.Popen[str]


@pytest.fixture(scope="module")
def attacker() -> Iterator[Attacker]:
    """One process for all attacks, which takes the names of guards and prints a line for each."""
    words = [sys.executable, "-m", "tests.attacks.guards", "-"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        yield process
        process.communicate()


@pytest.mark.long
@pytest.mark.parametrize("guard", GUARDS)
def test_without_a_guard_an_attack_succeeds(guard: str, attacker: Attacker) -> None:
    assert attacker.stdin
    assert attacker.stdout
    print(guard, file=attacker.stdin, flush=True)
    verdict, _, said = attacker.stdout.readline().partition(f"without {guard!r}: ")
    if re.match(r"\d+ skipped", said):  # such as without the Python that an attack needs
        pytest.skip(said)
    assert verdict.strip() == "attacked", said
