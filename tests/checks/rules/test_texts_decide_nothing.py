"""What the probes say in words decides nothing: kinds do."""

import ast
import random
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tenv.checks.before_create import Surroundings
from tenv.checks.choose_target import choose
from tenv.checks.judge import Verdicts
from tenv.core.errors import TenvError
from tenv.host.report import HostReport
from tenv.host.report_json import from_json, to_json
from tenv.project.context import Context
from tests.checks.rules.cases import facts
from tests.support.each import each
from tests.support.rarely import first_fast
from tests.support.recorded_reports import recorded_reports, recorded_verdicts
from tests.support.shipped import Shipped, row

TEXTS = {"origin", "missing", "text"}
"""The keys of a report that hold sentences."""
VALUES = {
    *("value", "kind", "tenv", "name", "compute_capability", "pci_id", "pci_address", "path", "version", "file"),
    *("home", "environment", "glibcxx", "cxxabi", "file_system"),
}
"""The keys that hold values; components are named by NVIDIA."""

ANEW = "python -m tests.support.recorded_reports"
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
    data = to_json(from_json(recorded_reports()[name]))
    changed = scrambled(data)
    assert not set(sentences(data)) & set(sentences(changed))
    return from_json(data), from_json(changed)


@pytest.fixture(scope="module")
def shipped() -> Shipped:
    return Shipped()


def test_every_report_has_its_verdicts() -> None:
    assert len(recorded_reports()) > 200
    assert set(recorded_verdicts()) == set(recorded_reports())


@pytest.mark.parametrize("start", first_fast(range(32)))
def test_every_verdict_stays(start: int, shipped: Shipped) -> None:
    for number, name in list(enumerate(recorded_reports()))[start::32]:
        with_words, without = both(name)
        found = shipped(without)
        rows = {target: row(said) for target, said in found.items()}
        assert rows == recorded_verdicts()[name], f"{name}: after a change on purpose, `{ANEW}` writes them anew"
        if number // 32 % 2 == 0 or name.startswith("by hand"):
            assert fixes(found) == fixes(shipped(with_words)), name


def fixes(found: dict[str, Verdicts]) -> list[tuple[str, str, str]]:
    return [(one.subject, one.source, one.fix) for verdicts in found.values() for one in verdicts.findings]


CHOICES = [name for name in recorded_reports() if name.startswith("auto - an override")]


@each("name", CHOICES)
def test_every_choice_stays(name: str) -> None:
    chosen = []
    for host in both(name):
        try:
            chosen.append(choose(Context(), Surroundings(host, None, facts()), lambda _: None).target)
        except TenvError as error:
            chosen.append(error.code)
    assert chosen[0] == chosen[1]


SOURCE = Path(__file__).parents[3] / "src" / "tenv"
DECIDING = sorted(file for folder in ("host", "checks") for file in (SOURCE / folder).rglob("*.py"))
SENTENCES = {"reason", "origin", "ways", "evidence", "message"}
"""The attributes of facts, of what is missing, of toolkits and of findings that hold words for people."""

ASKS = {"startswith", "endswith", "find", "index", "count", "match", "fullmatch", "search", "isidentifier"}


def is_sentence(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr in SENTENCES for part in ast.walk(node))


def decided_by(node: ast.AST) -> list[ast.expr]:
    """Return what a comparison compares, or what a text is asked for its beginning, its end or a part of it."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKS:
        return [node.func.value, *node.args]
    return []


def deciding(text: str) -> list[int]:
    """Return the lines in which a sentence decides."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.expr)]
    return [node.lineno for node in nodes if any(map(is_sentence, decided_by(node)))]


@each("file", DECIDING)
def test_no_sentence_is_compared(file: Path) -> None:
    assert deciding(file.read_text(encoding="utf-8")) == []


def test_a_comparison_would_be_found() -> None:
    for line in ('x = "a" in host.cuda.reason', 'y = fact.origin.startswith("b")', 'z = re.match("c", toolkit.ways)'):
        assert deciding(line) == [1]


@each("file", [file for file in DECIDING if file.parent.name == "host"])
def test_every_probe_says_the_kind_of_what_it_answers(file: Path) -> None:
    bare = [
        node.lineno
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if len(node.args) + len(node.keywords) < {"Missing": 2, "Fact": 3}.get(node.func.id, 0)
    ]
    assert bare == [], "an answer without a kind"
