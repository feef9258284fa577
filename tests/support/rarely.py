"""Parameters of which the fast tests take some alone; `-m long` runs the others."""

from collections.abc import Collection, Iterable
from itertools import product
from typing import Any

import pytest

__all__ = ["first_fast", "pairs_fast", "some_fast"]


def first_fast(values: Iterable[Any], fast: int = 1, *, several: bool = False) -> list[Any]:
    """Return parameters; those behind the first `fast` ones are marked `long`.

    Args:
        values: The values of the parameter.
        fast: How many of them the fast tests take.
        several: Whether each value is a tuple for several parameters.
    """
    return [
        pytest.param(*(value if several else (value,)), marks=[pytest.mark.long] if number >= fast else [])
        for number, value in enumerate(values)
    ]


def some_fast(values: Iterable[Any], fast: Collection[Any]) -> list[Any]:
    """Return parameters; those that are not among `fast`, which must all be there, are marked `long`."""
    every = list(values)
    assert set(fast) <= set(every), set(fast) - set(every)
    return [pytest.param(value, marks=[] if value in fast else [pytest.mark.long]) for value in every]


def pairs_fast(first: Collection[Any], second: Collection[Any]) -> list[Any]:
    """Return each value of two parameters with each of the other; the fast tests take each value once at least."""
    rounds = min(len(first), len(second))
    return [
        pytest.param(one, other, marks=[] if (number - place) % rounds == 0 else [pytest.mark.long])
        for (number, one), (place, other) in product(enumerate(first), enumerate(second))
    ]
