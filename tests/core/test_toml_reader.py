import re
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenv.core.dataclass import dataclass
from tenv.core.errors import ManifestError
from tenv.core.toml_reader import Column, OptionalText, Table, locate, nearest, read_toml
from tenv.core.versions import Version
from tenv.core.worded import Worded
from tests.support.each import each

TEXT = """\
name = "x"

[a.b]
c = 1
"d e" = { f = 2 }

[[rows]]
g = 3

[[rows]]
g = 4
[rows.in]
h = 5
[[rows.more]]
[[rows.more]]
i = 6

[z]
list = [
    { k = 1 },
]
"""


@each(
    "path, line",
    [
        (("name",), 1),
        (("a", "b"), 3),
        (("a", "b", "c"), 4),
        (("a", "b", "d e", "f"), 5),
        (("a", "b", "missing"), 3),
        (("nowhere",), None),
        (("rows",), 7),
        (("rows[0]", "g"), 8),
        (("rows[1]", "g"), 11),
        (("rows[1]", "missing"), 10),
        (("rows[1]", "in", "h"), 13),
        (("rows[1]", "more[1]", "i"), 16),
        (("rows[1]", "more[0]", "i"), 14),
        (("z", "list[0]", "k"), 19),
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


@each(
    "get, message",
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


@each(
    "content, message",
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


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Way(Worded):
    ROAD = "road", "a road"
    OTHER = "other", "none of these"


@dataclass(frozen=True, slots=True)
class Wheel:
    size: int
    name: str = "plain"


@dataclass(frozen=True, slots=True)
class Bike:
    name: Annotated[str, Column("id")]
    version: Version
    day: date | None
    colour: Colour
    way: Way
    electric: bool
    pattern: re.Pattern[str] | None
    tags: tuple[str, ...]
    gears: tuple[int, ...]
    fits: tuple[Version, ...]
    wheels: tuple[Wheel, ...]
    spare: Wheel | None
    note: OptionalText
    doubled: Annotated[int, Column("gear", read=lambda row, key: 2 * (row.number(key) or 0))]
    owner: str
    bell: bool = True


PLAIN = {"id": "a", "version": "1.2", "colour": "red"}


def test_a_dataclass_is_read_by_the_types_of_its_fields() -> None:
    found = table(
        **PLAIN,
        day="2024-02-29",
        way="road",
        electric=True,
        pattern="a+",
        tags=["x"],
        gears=[3, 7],
        fits=["1", "2.0"],
        wheels=[{"size": 28}, {"size": 26, "name": "b"}],
        spare={"size": 1},
        gear=4,
    ).read(Bike, owner="me")
    assert found == Bike(
        *("a", Version("1.2"), date(2024, 2, 29), Colour.RED, Way.ROAD, True, re.compile("a+"), ("x",), (3, 7)),
        *((Version("1"), Version("2.0")), (Wheel(28), Wheel(26, "b")), Wheel(1), "", 8, "me"),
    )


def test_what_may_be_missing_has_its_default() -> None:
    found = table(**PLAIN, way="tunnel", bell=None).read(Bike, owner="me")
    assert (found.day, found.way, found.electric, found.pattern, found.tags) == (None, Way.OTHER, False, None, ())
    assert (found.gears, found.fits, found.wheels, found.spare) == ((), (), (), None)
    assert (found.note, found.doubled, found.bell) == ("", 0, True)


@each(
    "change, message",
    [
        ({"id": None}, "f.toml: id: is required"),
        ({"id": ""}, "f.toml: id: is required"),
        ({"version": ""}, "f.toml: version: is required"),
        ({"version": "new"}, "f.toml: version: `new` is not a dotted version"),
        ({"colour": "green"}, "f.toml: colour: expected red or blue, got `green`"),
        ({"day": "today"}, "f.toml: day: Invalid isoformat string"),
        ({"pattern": "("}, "f.toml: pattern: no regular expression: "),
        ({"electric": 1}, "f.toml: electric: expected true or false, got a number"),
        ({"gears": ["3"]}, "f.toml: gears: expected a list of numbers"),
        ({"gears": [True]}, "f.toml: gears: expected a list of numbers"),
        ({"fits": ["x"]}, "f.toml: fits: `x` is not a dotted version"),
        ({"wheels": [{"size": 1}, {}]}, "f.toml: wheels[1].size: is required"),
        ({"wheels": [{"size": 1.5}]}, "f.toml: wheels[0].size: expected a whole number, got a number"),
        ({"spare": {"size": -1}}, "f.toml: spare.size: expected no less than 0"),
        ({"spare": {"size": 1 << 63}}, "f.toml: spare.size: expected no more than 9223372036854775807"),
        ({"spare": []}, "f.toml: spare: expected a table, got a list"),
    ],
)
def test_a_faulty_field_names_its_path(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        table(**{**PLAIN, **change}).read(Bike, owner="me")
    assert caught.value.message.startswith(message)
