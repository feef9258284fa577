"""A report of schema 1 means what it meant."""

import pytest

from tenv.host.report_json import from_json
from tests.support.old_reports import old_reports, old_verdicts
from tests.support.shipped import Shipped, row


@pytest.fixture(scope="module")
def shipped() -> Shipped:
    return Shipped()


def test_every_report_has_its_verdicts() -> None:
    assert len(old_reports()) > 200
    assert set(old_verdicts()) == set(old_reports())


def test_an_old_report_gives_the_verdicts_that_it_gave(shipped: Shipped) -> None:
    for name, data in old_reports().items():
        found = {target: row(said) for target, said in shipped(from_json(data, name)).items()}
        assert found == old_verdicts()[name], name
