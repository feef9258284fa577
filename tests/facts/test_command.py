"""``tenv facts``."""

import json
from pathlib import Path

import pytest

from tenv.facts.table_files import LAYOUTS
from tests.support.each import each
from tests.support.projects import Project, call


def test_the_list(project: Project) -> None:
    ended = call("facts")
    assert ended.status == 0
    assert [line.split()[0] for line in ended.out.splitlines()] == ["TABLE", *LAYOUTS]
    rows = call("facts", "--json").data
    assert set(rows[0]) == {"name", "about", "date", "rows", "unconfirmed", "own"}
    assert rows[0]["name"] == "cuda_driver"


@each("name", LAYOUTS)
def test_a_table(project: Project, name: str) -> None:
    ended = call("facts", name)
    assert ended.status == 0
    sections = call("facts", name, "--json").data["sections"]
    assert list(sections) == list(LAYOUTS[name].sections)
    for section, rows in sections.items():
        assert f"[{section}]" in ended.out.splitlines()
        assert all(row["source"] and row["from"] == "built-in" and isinstance(row["confirmed"], bool) for row in rows)


def test_a_row_that_is_not_confirmed_says_so(project: Project) -> None:
    (line,) = [line for line in call("facts", "cuda_host_compiler").out.splitlines() if line.startswith("11.3")]
    assert line.split()[7] == "NO"


def test_own_rows_are_told_apart(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "libstdcxx.toml"
    file.write_text('[[gcc]]\nsince = "18.1"\nglibcxx = "3.4.40"\ncxxabi = "1.3.20"\nsource = "hearsay"\n')
    monkeypatch.setenv("TENV_FACTS", str(file))
    assert f"hearsay ({file})" in call("facts", "libstdcxx").out
    assert call("facts", "libstdcxx", "--json").data["own"] == 1


def test_a_broken_file_is_told(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "libstdcxx.toml"
    file.write_text('[[gcc]]\nsince = "18.1"\nglibcx = "3.4.40"\nsource = "hearsay"\n')
    monkeypatch.setenv("TENV_FACTS", str(file))
    ended = call("facts", "libstdcxx")
    assert ended.status == 2
    assert ended.err.startswith(f"error[facts]: {file}:3: gcc.glibcx: unknown key\nhint: did you mean `glibcxx`?")


def test_an_unknown_table(project: Project) -> None:
    ended = call("facts", "cuda_drivers", "--json")
    assert ended.status == 2
    error = json.loads(ended.out)["error"]
    assert error["code"] == "usage"
    assert error["hint"] == "did you mean `cuda_driver`?"


def test_a_value_of_the_wrong_kind_is_told_where_rows_are_shown(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "libstdcxx.toml"
    file.write_text('[[gcc]]\nsince = "18.1"\nglibcxx = 3\ncxxabi = "1.3.20"\nsource = "hearsay"\n')
    monkeypatch.setenv("TENV_FACTS", str(file))
    for words in (("facts",), ("facts", "libstdcxx")):
        ended = call(*words)
        assert (ended.status, ended.out) == (2, "")
        assert ended.err.startswith(f"error[facts]: {file}:3: gcc.glibcxx: expected a string, got a number")
    assert call("facts", "cudnn").status == 0
