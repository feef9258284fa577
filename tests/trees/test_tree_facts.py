"""What PyTorch's trees say of their own build, tag by tag: the files are whole, and each fact names where it was read.

A file holds facts alone, no text of the tree. `differences.toml` sets them against the table that the program uses.
"""

import re
from pathlib import Path
from typing import Any

import tomli

from tenv.core.versions import Version
from tenv.facts.pytorch_build import Release
from tenv.facts.tables import load_facts
from tests.support.each import each

HERE = Path(__file__).parent
TREES = sorted(path.stem for path in HERE.glob("*.toml") if path.stem != "differences")
TABLES = {"environment", "environment_shell", "environment_cmake", "documented", "options"}
VERDICTS = {"mended", "added", "confirm", "note", "keep"}


def read(name: str) -> dict[str, Any]:
    return tomli.loads((HERE / f"{name}.toml").read_text())


def test_there_are_trees_from_the_first_release_to_the_trunk() -> None:
    assert len(TREES) >= 12
    assert TREES[0].startswith("trunk")
    assert "v0.1.1" in TREES


@each("name", TREES)
def test_a_tree_says_where_it_was_read(name: str) -> None:
    tree = read(name)
    assert tree["tree"] == name
    assert tree["read_in"]
    assert re.fullmatch(r"[0-9a-f]{40}|", tree["commit"])
    assert set(tree) <= {"tree", "commit", "read_in", "note", "fact", "forwarded"} | TABLES


@each("name", TREES)
def test_each_fact_has_a_value_and_a_place(name: str) -> None:
    facts = read(name)["fact"]
    names = [fact["name"] for fact in facts]
    assert len(names) == len(set(names))
    assert "backend" in names
    for fact in facts:
        assert set(fact) <= {"name", "value", "at", "note"}
        assert fact["value"] or fact["name"] == "gcc_min_header"
        assert re.match(r"[\w./+-]+", fact["at"])


@each("name", TREES)
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


RELEASES = {"trunk-2025-03": "2.7.1", "trunk-2026-06": "2.13.0"}
"""The first release that came out of a trunk. `trunk-scikit` is a commit of which only the build backend was read."""
COMPARED = [name for name in TREES if name != "trunk-scikit"]


def release_of(name: str) -> Release:
    tag = RELEASES.get(name) or name.removeprefix("v").partition("-")[0]
    row = load_facts().pytorch_build.release(tag)
    assert row is not None
    assert row.version.major_minor == Version(tag).major_minor, f"no row for {name}"
    return row


def highest(found: dict[str, Any], *names: str) -> Version | None:
    return max((Version(found[name]) for name in names if found.get(name)), default=None)


@each("name", COMPARED)
def test_the_facts_of_the_program_are_what_the_tree_says(name: str) -> None:
    row, found = release_of(name), {fact["name"]: fact["value"] for fact in read(name)["fact"]}
    assert row.cmake_min == highest(found, "cmake_min")
    assert row.cuda_min == highest(found, "cuda_min")
    assert row.cudnn_min == highest(found, "cudnn_min", "cudnn_min_dependencies")
    assert row.gcc_min_header == highest(found, "gcc_min", "gcc_min_header")
    assert row.clang_min_header == highest(found, "clang_min", "clang_min_header")
    assert f"C++{row.cxx_standard}" == found["cxx_standard"]
    assert row.scikit_build == (found["backend"] == "scikit-build-core")
    asked = found.get("python_requires") or (f">={found['python_min']}" if "python_min" in found else None)
    assert asked in (None, row.requires_python)
