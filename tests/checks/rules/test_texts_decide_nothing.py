"""What the probes say in words decides nothing: kinds do."""

import random
import string
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tenv.checks.before_create import Surroundings
from tenv.checks.choose_target import choose
from tenv.core.errors import TenvError
from tenv.host.report import HostReport
from tenv.host.report_json import from_json, to_json
from tenv.project.context import Context
from tests.checks.rules.cases import facts
from tests.support.old_reports import old_reports
from tests.support.shipped import Shipped, row

TEXTS = {"origin", "missing", "text"}
"""The keys of a report that hold sentences."""
VALUES = {
    *("value", "kind", "tenv", "name", "compute_capability", "pci_id", "pci_address", "path", "version", "file"),
    *("home", "environment", "glibcxx", "cxxabi", "file_system"),
}
"""The keys that hold values; components are named by NVIDIA."""

LETTERS = random.Random(11)


@cache
def word(sentence: str) -> str:
    """Return a word that stands for a sentence wherever that is said."""
    return "".join(LETTERS.choices(string.ascii_letters, k=12))


def scrambled(data: Any, key: str = "") -> Any:
    """Return the plain values of a report with a random word in the place of every sentence."""
    if isinstance(data, dict):
        return {name: scrambled(value, name if key != "components" else "value") for name, value in data.items()}
    if isinstance(data, list):
        return [scrambled(value, key) for value in data]
    if isinstance(data, str):
        assert key in TEXTS | VALUES, f"is `{key}` of a report a sentence or a value?"
    return word(data) if key in TEXTS else data


def sentences(data: Any, key: str = "") -> Iterator[str]:
    if isinstance(data, dict):
        for name, value in data.items():
            yield from sentences(value, name)
    elif isinstance(data, list):
        for value in data:
            yield from sentences(value, key)
    elif key in TEXTS:
        yield data


def both(name: str) -> tuple[HostReport, HostReport]:
    """Return a report, and the same without a sentence that tenv ever wrote."""
    data = to_json(from_json(old_reports()[name]))
    changed = scrambled(data)
    assert not set(sentences(data)) & set(sentences(changed))
    return from_json(data), from_json(changed)


@pytest.fixture(scope="module")
def shipped() -> Shipped:
    return Shipped()


def test_every_verdict_stays(shipped: Shipped) -> None:
    for name in old_reports():
        told, untold = both(name)
        before, after = shipped(told), shipped(untold)
        for target, (verdicts, driver) in after.items():
            assert row(verdicts, driver) == row(*before[target]), (name, target)
            fixes = [(finding.subject, finding.source, finding.fix) for finding in verdicts.findings]
            assert fixes == [(one.subject, one.source, one.fix) for one in before[target][0].findings], (name, target)


CHOICES = [name for name in old_reports() if name.startswith("auto - an override")]


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_stays(name: str) -> None:
    chosen = []
    for host in both(name):
        try:
            chosen.append(choose(Context(), Surroundings(host, None, facts()), lambda _: None).target)
        except TenvError as error:
            chosen.append(error.code)
    assert chosen[0] == chosen[1]
