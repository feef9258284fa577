"""Values of YAML texts, and what is said of a text that has none."""

import re

import pytest

from tenv.core.yaml_reader import load


def test_a_text_is_read_as_values() -> None:
    assert load("a: [1, x, null]\nb: {c: true}\n") == {"a": [1, "x", None], "b": {"c": True}}
    assert load("a: ä".encode()) == {"a": "ä"}
    assert load("") is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [1\nb: 2", "did not find expected ',' or ']' (line 2)"),
        ("a: {b: c}: d", "mapping values are not allowed in this context (line 1)"),
        (b"a: \xff", "invalid leading UTF-8 octet"),
        ("a: 2001-13-45", "month must be in 1..12"),
        ("a: 0x_", "invalid literal for int() with base 16: ''"),
        ("a: !!bool x", "a value is not what its tag says"),
        ("a: !!int ''", "a value is not what its tag says"),
        ("a: !!timestamp x", "a value is not what its tag says"),
        ("a: !!python/name:os.system x", "could not determine a constructor for the tag"),
    ],
)
def test_a_text_without_a_value_is_one_kind_of_error(text: str | bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        load(text)
