"""Several programs at once."""

from collections.abc import Callable, Iterable
from typing import TypeVar

__all__ = ["each"]

T = TypeVar("T")
R = TypeVar("R")

_THREADS = 8  # the time goes into waiting for programs


def each(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return the function's result for each item, in order; threads are used where there is more than one."""
    todo = list(items)
    if len(todo) < 2:  # noqa: PLR2004 (nothing to do at once)
        return [function(item) for item in todo]
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (late: 10 ms)

    with ThreadPoolExecutor(min(len(todo), _THREADS)) as pool:
        return list(pool.map(function, todo))
