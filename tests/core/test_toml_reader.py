from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenv.core.errors import ManifestError
from tenv.core.toml_reader import Table, locate, nearest, read_toml

TEXT = """\
name = "x"

[a.b]
c = 1
"d e" = { f = 2 }

[[rows]]
g = 3
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 1),
        (("a", "b"), 3),
        (("a", "b", "c"), 4),
        (("a", "b", "d e", "f"), 5),
        (("a", "b", "missing"), 3),
        (("nowhere",), None),
    ],
)
def test_a_key_is_found_on_its_line_or_on_that_of_its_table(path: tuple[str, ...], line: int | None) -> None:
    assert locate(TEXT, path) == line


@given(st.text(), st.lists(st.text(), max_size=3))
def test_locating_never_fails(text: str, path: list[str]) -> None:
    line = locate(text, tuple(path))
    assert line is None or 1 <= line <= len(text.splitlines())


def table(**data: object) -> Table:
    return Table(data, file="f.toml")


@pytest.mark.parametrize(
    ("get", "message"),
    [
        (lambda: table(k=1).text("k"), "f.toml: k: expected a string, got a number"),
        (lambda: table(k=True).text("k"), "f.toml: k: expected a string, got true or false"),
        (lambda: table(k="x").strings("k"), "f.toml: k: expected a list of strings, got a string"),
        (lambda: table(k=["x", 1]).strings("k"), "f.toml: k: expected a list of strings, got a number in it"),
        (lambda: table(k=[]).table("k"), "f.toml: k: expected a table, got a list"),
        (lambda: table(k="").required_text("k"), "f.toml: k: is required"),
        (lambda: table().required_text("k"), "f.toml: k: is required"),
        (lambda: table(k=1).flag("k"), "f.toml: k: expected true or false, got a number"),
        (lambda: list(table(k=[1]).rows("k")), "f.toml: k: expected an array of tables, got a number in it"),
    ],
)
def test_a_wrong_kind_is_told_with_its_path(get: object, message: str) -> None:
    assert callable(get)
    with pytest.raises(ManifestError) as error:
        get()
    assert error.value.message == message


def test_an_unknown_key_comes_with_the_nearest_known_one() -> None:
    with pytest.raises(ManifestError) as error:
        table(platfroms=[]).only(("platforms", "channels"))
    assert error.value.message == "f.toml: platfroms: unknown key"
    assert error.value.hint == "did you mean `platforms`?"


def test_an_unknown_key_that_is_like_none_comes_with_all() -> None:
    with pytest.raises(ManifestError) as error:
        table(zzz=1).only(("b", "a"))
    assert error.value.hint == "known keys: a, b"


def test_nearest_says_nothing_where_nothing_is_near() -> None:
    assert nearest("qqqq", ["cuda130"]) == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff", "m.toml: not UTF-8 text (byte 0)"),
        (b"a = ", "m.toml: not TOML: Invalid value (at end of document)"),
        (b"a = " + b"1" * 5000, "m.toml: has a number with thousands of digits"),
    ],
)
def test_a_file_that_is_no_toml_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "m.toml").write_bytes(content)
    with pytest.raises(ManifestError) as error:
        read_toml(tmp_path / "m.toml", name="m.toml")
    assert error.value.message == message


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="can't be read: is not a regular file"):
        read_toml(tmp_path)
