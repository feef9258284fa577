"""The words that docs/STYLE.md bans stand in no message, docstring, comment or page."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.each import each
from tests.support.wording import PATTERNS, SEVERAL, comments, kinds_of_text, rates

ROOT = Path(__file__).parent.parent
STYLE = ROOT / "docs" / "STYLE.md"

INSTEAD = {
    r"(un)?told": "say who reports, warns or returns what",
    r"a person": "name the user",
    r"nobody says": "say that it is unknown, or which source lacks it",
    r"nothing else says": "say that it is unknown, or which source lacks it",
    r"at hand": "write `installed`, `present` or `current`",
    r"of another time": "name the version or the release",
    r"taken over": "write `imported`, `kept` or `resolved from the system`",
}
"""What to write in place of each banned word, by its pattern."""

ANY = re.compile(rf"\b(?:{'|'.join(INSTEAD)})\b", re.IGNORECASE)

PAGES = [
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page != STYLE),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "src").rglob("*.toml")),
    *sorted((ROOT / "manifests").glob("*.toml")),
    *sorted((ROOT / "examples").rglob("*.*")),
]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def docstrings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module, each with its line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (words := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), words


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the strings with a space in them, docstrings included, and the comments of a module, each with its line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, node.value
    yield from comments(text)


def faults(place: str, rows: Iterator[tuple[int, str]]) -> Iterator[str]:
    """Yield where banned words stand and what to write in their place."""
    for line, words in rows:
        joined = re.sub(r"\s+", " ", words)
        if not ANY.search(joined):
            continue
        for word, instead in INSTEAD.items():
            if found := re.search(rf"\b{word}\b", joined, re.IGNORECASE):
                yield f"{place}:{line}: `{found[0]}` is banned by docs/STYLE.md: {instead}"


def rows_of(path: Path) -> Iterator[tuple[int, str]]:
    """Return the lines of a page, the docstrings of a test, or all prose of a source."""
    text = path.read_text(encoding="utf-8")
    joined = re.sub(r"[\"']\s+[rf]*[\"']", "", text.replace("\\n", " "))  # as in a string of several pieces
    if not ANY.search(re.sub(r"\s+", " ", joined)):  # its tree would take fifty times as long
        return iter(())
    if path in PAGES:
        return iter(enumerate(text.splitlines(), 1))
    return docstrings(text) if path in TESTS else prose(text)


@each("paths", [SOURCES, TESTS, PAGES])
def test_no_banned_word(paths: list[Path]) -> None:
    assert paths
    found = [fault for path in paths for fault in faults(str(path.relative_to(ROOT)), rows_of(path))]
    assert found == [], "\n".join(found)


def test_banned_words_are_found_in_strings_comments_and_docstrings() -> None:
    module = '"""Told of\n    it."""\nx = f"what a\\nperson {1} says"  # nobody  says\ntold = "told"\ny = "in person"\n'
    assert [fault.split("`")[1] for fault in faults("x", prose(module))] == ["Told", "a person", "nobody says"]
    assert [fault.split("`")[1] for fault in faults("x", docstrings(module))] == ["Told"]


MOST = {
    "docstrings": {"mouth and ear": 0.7, "what": 0.6, "German order": 0.7, "that of": 1.0, SEVERAL: 0.9},
    "messages": {"mouth and ear": 0.6, "what": 1.6, "German order": 0.3, "that of": 0.6},
    "pages": {"mouth and ear": 1.3, "what": 4.4, "German order": 0.3, "that of": 0.8},
}
"""The most of each pattern in 1,000 words, slightly above the rates of 2026-11; pages have titles `What …`."""


@pytest.mark.long
def test_patterns_of_wording_stay_as_rare_as_they_are() -> None:
    texts = {**kinds_of_text(ROOT / "src"), "pages": kinds_of_text(ROOT / "docs")["pages"]}
    found = {kind: rates(texts[kind]) for kind in MOST}
    assert [
        (kind, name, found[kind][name])
        for kind, most in MOST.items()
        for name in most
        if found[kind][name] > most[name]
    ] == []


def test_a_pattern_is_counted_outside_of_code_alone() -> None:
    row = rates(["What it says is `what` a\nprogram tells.", "No host is to be found, since there is none: <what>."])
    assert row["words"] == 17
    assert {name: round(row[name] * 17 / 1000) for name in PATTERNS} == {
        "mouth and ear": 2,
        "what": 1,
        "German order": 2,
        "that of": 0,
    }
