"""Each guard stops something: without it, an attack of the tests succeeds."""

import re

import pytest

from tests.attacks.guards import GUARDS, _succeeds


@pytest.mark.long
@pytest.mark.parametrize("guard", GUARDS)
def test_without_a_guard_an_attack_succeeds(guard: str) -> None:
    succeeds, said = _succeeds(guard)
    if re.match(r"\d+ skipped", said):  # such as without the Python that an attack needs
        pytest.skip(said)
    assert succeeds, said
