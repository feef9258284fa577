"""Each guard stops something: without it, an attack of the tests succeeds."""

import pytest

from tests.attacks.guards import GUARDS, _succeeds


@pytest.mark.long
@pytest.mark.parametrize("guard", GUARDS)
def test_without_a_guard_an_attack_succeeds(guard: str) -> None:
    succeeds, said = _succeeds(guard)
    assert succeeds, said
