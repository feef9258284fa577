"""Values of YAML texts, and what is said of a text that has none."""

import re

import pytest

from tenv.core.yaml_reader import load
from tests.support.each import each


def test_a_text_is_read_as_values() -> None:
    assert load("a: [1, x, null]\nb: {c: true}\n") == {"a": [1, "x", None], "b": {"c": True}}
    assert load("a:\n- b\n-\n  - c\nd: []\ne: {}\nf:") == {"a": ["b", ["c"]], "d": [], "e": {}, "f": None}
    assert load("- 'x'\n- !!str 1\n- \"2\"\n- -3") == ["x", "1", "2", -3]
    assert load("a: ä".encode()) == {"a": "ä"}
    assert load("") is None


@each("text", ["2001-13-45", "1:30:00", "1_000", "0x_", "0o17", "1.10", "9" * 5000, ".inf", "=", "yes"])
def test_what_only_looks_like_a_value_of_a_type_is_the_text_that_it_is(text: str) -> None:
    assert load(f"a: {text}") == {"a": text}


def test_brackets_in_comments_and_texts_do_not_count() -> None:
    assert load("a: x # " + "[" * 100 + "\nb: '" + "{" * 100 + "'") == {"a": "x", "b": "{" * 100}


@each(
    "text, reason",
    [
        ("a: [1\nb: 2", "did not find expected ',' or ']' (line 2)"),
        ("a: {b: c}: d", "mapping values are not allowed in this context (line 1)"),
        (b"a: \xff", "not UTF-8 text (byte 3)"),
        ("a: 1".encode("utf-16"), "not UTF-8 text (byte 0)"),
        ("a: !!bool x", "uses the tag `tag:yaml.org,2002:bool` (line 1)"),
        ("a: !!int ''", "uses the tag `tag:yaml.org,2002:int` (line 1)"),
        ("a: !!python/name:os.system x", "uses the tag `tag:yaml.org,2002:python/name:os.system` (line 1)"),
        ("a: &x [1]\nb: *x", "uses a YAML alias (`*x`) (line 2)"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "uses a merge key (`<<`) (line 3)"),
        ("a: &x b\n*x : c", "uses a YAML alias (`*x`) (line 2)"),
        ("a: 1\nb: 2\na: 3", "the key `a` is duplicated (line 3)"),
        ("? [a]\n: b", "a key is not a text (line 1)"),
        ("a: 1\n---\nb: 2", "a second document (line 2)"),
        ("[" * 60 + "]" * 60, "nested too deep (line 1)"),
        ("- " * 100_000 + "a", "nested too deep (line 1)"),
        ("? - " * 50_000, "a key is not a text (line 1)"),
        ("a: 1 # " + "[" * 100 + "\rb: " + "[" * 60, "nested too deep"),
        ("# \u2028" + "[" * 60, "nested too deep"),
    ],
)
def test_a_text_without_a_value_is_one_kind_of_error(text: str | bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        load(text)
