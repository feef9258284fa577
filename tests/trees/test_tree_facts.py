"""What PyTorch's trees say of their own build, tag by tag: the files are whole, and each fact names where it was read.

A file holds facts alone, no text of the tree. `differences.toml` sets them against the table that the program uses.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
TREES = sorted(path.stem for path in HERE.glob("*.toml") if path.stem != "differences")
TABLES = {"environment", "environment_shell", "environment_cmake", "documented", "options"}
VERDICTS = {"mend", "add", "confirm", "note", "keep"}


def read(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / f"{name}.toml").read_text())


def test_there_are_trees_from_the_first_release_to_the_trunk() -> None:
    assert len(TREES) >= 12
    assert TREES[0].startswith("trunk")
    assert "v0.1.1" in TREES


@pytest.mark.parametrize("name", TREES)
def test_a_tree_says_where_it_was_read(name: str) -> None:
    tree = read(name)
    assert tree["tree"] == name
    assert tree["read_in"]
    assert re.fullmatch(r"[0-9a-f]{40}|", tree["commit"])
    assert set(tree) <= {"tree", "commit", "read_in", "note", "fact", "forwarded"} | TABLES


@pytest.mark.parametrize("name", TREES)
def test_each_fact_has_a_value_and_a_place(name: str) -> None:
    facts = read(name)["fact"]
    names = [fact["name"] for fact in facts]
    assert len(names) == len(set(names))
    assert "backend" in names
    for fact in facts:
        assert set(fact) <= {"name", "value", "at", "note"}
        assert fact["value"] or fact["name"] == "gcc_min_header"
        assert re.match(r"[\w./+-]+", fact["at"])


@pytest.mark.parametrize("name", TREES)
def test_each_variable_names_the_line_that_reads_it(name: str) -> None:
    tree = read(name)
    for table in TABLES & set(tree):
        assert tree[table]
        for variable, place in tree[table].items():
            assert re.fullmatch(r"[A-Za-z_]\w*", variable)
            assert re.fullmatch(r"[\w./+-]+:\d+", place)


def test_each_difference_is_explained_by_a_tree() -> None:
    found = read("differences")["difference"]
    assert found
    for difference in found:
        assert difference["tree"] in TREES
        assert difference["verdict"] in VERDICTS
        assert difference["at"]
        assert difference["tree_says"] or difference["explanation"]
