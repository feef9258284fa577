"""Frozen dataclasses that are quick to define act as those of `dataclasses`."""

import copy
import dataclasses
import itertools
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

from tenv.core.dataclass import dataclass
from tests.support.each import each


def define(make: Callable[..., Any]) -> Any:
    """Return a class with every kind of field."""

    @make(frozen=True, slots=True)
    class Row:
        """A row."""

        name: str
        size: int = 1
        parts: "list[int]" = field(default_factory=list, compare=False)
        _later: "dict[str, int]" = field(init=False, repr=False, compare=False, default_factory=dict)
        unset: str = field(init=False, repr=False, compare=False)
        fixed: int = field(init=False, default=7)

        def __post_init__(self) -> None:
            self._later[self.name] = self.size

    return Row


@dataclass(frozen=True, slots=True)
class Kept:
    """A class that `pickle` finds."""

    name: str


@dataclass(frozen=True, slots=True)
class Named(Kept):
    """One with more fields."""

    more: int = 0


class Loose(Kept):
    """A class of its own, with a `__dict__`."""


OURS, THEIRS = define(dataclass), define(dataclasses.dataclass)


@each(
    "words, named",
    itertools.product(
        [(), ("a",), ("a", 2), ("a", 2, [3]), ("a", 2, [3], 4)],
        [{}, {"size": 5}, {"parts": []}, {"_later": {}}, {"other": 1}],
    ),
)
def test_objects_are_made_and_printed_alike(words: tuple[Any, ...], named: dict[str, Any]) -> None:
    def made(cls: Any) -> Any:
        try:
            row = cls(*words, **named)
        except TypeError as error:
            return str(error).replace("define.<locals>.", "")
        return repr(row), row._later, row.parts, row.fixed, hasattr(row, "unset")

    assert made(OURS) == made(THEIRS)
    assert made(OURS) == made(THEIRS)  # now that the constructor is compiled


def test_equality_hash_and_defaults_of_each_object() -> None:
    one, same, other = OURS("a", 1, [1]), OURS("a", 1, [2]), OURS("a", 2)
    assert (one == same, one == other, one == THEIRS("a", 1), hash(one) == hash(same)) == (True, False, False, True)
    assert Kept("x") == Kept("x") != Kept("y")
    assert hash(Kept("x")) == hash(("x",))
    assert OURS("a").parts is not OURS("a").parts


def test_the_functions_of_dataclasses_take_them() -> None:
    row = OURS("a", 2)
    assert [one.name for one in dataclasses.fields(OURS)] == [one.name for one in dataclasses.fields(THEIRS)]
    assert dataclasses.replace(Kept("a"), name="b") == Kept("b")
    assert dataclasses.is_dataclass(row)
    assert dataclasses.asdict(Named("a", 2)) == {"name": "a", "more": 2}
    assert (OURS.__slots__, OURS.__match_args__) == (THEIRS.__slots__, THEIRS.__match_args__)
    assert not hasattr(row, "__dict__")


def test_no_field_can_be_assigned_or_deleted() -> None:
    row: Any = Kept("a")
    for name in ("name", "x"):
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(row, name, "b")
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot delete field '{name}'"):
            delattr(row, name)
    loose: Any = Loose("a")
    loose.x = 1
    del loose.x
    with pytest.raises(dataclasses.FrozenInstanceError):
        loose.name = "b"


def test_they_are_copied_and_pickled() -> None:
    assert copy.copy(Kept("a")) == copy.deepcopy(Kept("a")) == pickle.loads(pickle.dumps(Kept("a"))) == Kept("a")  # noqa: S301 (made here)


def test_own_methods_stay() -> None:
    @dataclass(frozen=True, slots=True)
    class Own:  # noqa: PLW1641 (the decorator adds it)
        """A class with an order of its own."""

        value: int

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "own"

    assert Own(1) == 5
    assert (repr(Own(1)), hash(Own(1))) == ("own", hash((1,)))


def test_a_class_is_compiled_by_its_first_object_alone() -> None:
    @dataclass(frozen=True, slots=True)
    class Late:
        """A class."""

        value: int

    before = Late.__init__
    Late(1)
    compiled = Late.__init__
    Late(2)
    assert before is not compiled
    assert compiled is Late.__init__


def test_other_kinds_are_those_of_dataclasses() -> None:
    @dataclass(slots=True)
    class Open:
        """A class whose fields may change."""

        value: int

    row = Open(1)
    row.value = 2
    assert row == Open(2)
