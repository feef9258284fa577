"""JSON with comments: what is added, and that no line of what was there is lost."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tenv.core.jsonc import merge, read, value_of
from tests.support.each import each

SETTINGS = """\
// mine
{
  "editor.tabSize": 2, // two
  /* "old": 1, */
  "files.associations": {
    "*.inc": "cpp" // and no others
  },
  "list": [1, 2],
  "url": "http://x//y", // a comment in it: "}"
}
// the end
"""


def lines_survive(before: str, after: str) -> bool:
    """Tell whether every line of a text stands in another in its order, but for a comma and a bracket moved off."""
    rest = iter(after)
    return all(sign in rest for sign in before if not sign.isspace())


def test_members_are_added_and_comments_stay() -> None:
    merged = merge(SETTINGS, {"files.associations": {"*.cu": "cuda-cpp"}, "list": [2, 3], "new": {"a": None}})
    assert merged.kept == ()
    assert value_of(read(merged.text)) == {
        "editor.tabSize": 2,
        "files.associations": {"*.inc": "cpp", "*.cu": "cuda-cpp"},
        "list": [1, 2, 3],
        "url": "http://x//y",
        "new": {"a": None},
    }
    assert '    "*.inc": "cpp", // and no others\n    "*.cu": "cuda-cpp"\n  },' in merged.text
    assert lines_survive(SETTINGS, merged.text)
    assert merge(merged.text, {"new": {"a": None}}).text == merged.text


def test_another_value_is_kept_unless_forced() -> None:
    wanted = {"editor.tabSize": 4, "files.associations": {"*.inc": "c"}, "list": "x"}
    merged = merge(SETTINGS, wanted)
    assert merged.text == SETTINGS
    assert merged.kept == (("editor.tabSize",), ("files.associations", "*.inc"), ("list",))
    forced = merge(SETTINGS, wanted, force=True)
    assert (forced.kept, value_of(read(forced.text)) | wanted) == ((), value_of(read(forced.text)))
    assert '"editor.tabSize": 4, // two' in forced.text


def test_entries_of_a_list_are_known_by_name() -> None:
    text = '{"configurations": [{"name": "a", "x": 1}, {"name": "b"}]}'
    wanted = {"configurations": [{"name": "a", "x": 2}, {"name": "c"}]}
    merged = merge(text, wanted)
    assert [row["name"] for row in value_of(read(merged.text))["configurations"]] == ["a", "b", "c"]
    assert merged.kept == (("configurations", "a"),)
    assert value_of(read(merge(text, wanted, force=True).text))["configurations"][0]["x"] == 2


@each(
    "text",
    ["", "  \n", "// only a comment\n", "{}", "{ }", "{ // c\n}", "\ufeff{}", '{"a": 1,}', '{"a": 1 // c\n}', "{\r\n}"],
)
def test_every_kind_of_end_takes_a_member(text: str) -> None:
    merged = merge(text, {"b": [1]}).text
    assert value_of(read(merged))["b"] == [1]
    assert lines_survive(text, merged)
    assert ("\r\n" in text) == ("\r\n" in merged)


@each("text", ["[]", "{", '{"a" 1}', '{"a": 1 "b": 2}', "{'a': 1}", '{"a": 01}', "{} x", "[" * 300])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line 1: no JSON"):
        merge(text, {"b": 1})


VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=5),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = some.dictionaries(some.text(max_size=3), VALUES, max_size=4)


@given(OBJECTS, OBJECTS, some.sampled_from([None, 1, 2, "\t"]))
def test_what_is_forced_is_there_and_nothing_else_is_lost(
    old: dict[str, Any], new: dict[str, Any], indent: int | str | None
) -> None:
    text = json.dumps(old, indent=indent)
    assert value_of(read(text)) == old
    kept = merge(text, new)
    found = value_of(read(kept.text))
    assert lines_survive(text, kept.text)
    assert {**found, **old}.keys() == found.keys()
    forced = value_of(read(merge(text, new, force=True).text))
    for name, value in new.items():
        assert forced[name] == value or isinstance(value, dict | list)


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node on this machine")
def test_node_reads_it_once_its_comments_are_out(tmp_path: Path) -> None:
    merged = merge(SETTINGS.replace("// two", "").replace(' // a comment in it: "}"', ""), {"k": {"v": [True]}}).text
    body = merged[merged.index("{") : merged.rindex("}") + 1]
    script = "const f=require('fs').readFileSync(0,'utf8');console.log(JSON.stringify(eval('('+f+')')))"
    done = subprocess.run(["node", "-e", script], input=body, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["k"] == {"v": [True]}
