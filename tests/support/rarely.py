"""Parameters of which the fast tests take the first ones alone; `-m long` runs the others."""

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["first_fast"]


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
