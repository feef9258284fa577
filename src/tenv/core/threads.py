"""Several programs at once, and programs beside one's own work; `concurrent.futures` would take 10 ms to load."""

from collections.abc import Callable, Iterable
from functools import partial
from threading import Semaphore, Thread
from typing import TypeVar

__all__ = ["ahead", "each"]

T = TypeVar("T")
R = TypeVar("R")

_THREADS = 8  # programs at once: the time goes into waiting for them


def each(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return the function's result for each item, in order; threads are used where there is more than one."""
    todo = list(items)
    if len(todo) < 2:  # noqa: PLR2004 (nothing to do at once)
        return [function(item) for item in todo]
    free = Semaphore(_THREADS)

    def one(item: T) -> R:
        with free:
            return function(item)

    return [result() for result in [ahead(partial(one, item)) for item in todo]]


def ahead(function: Callable[[], R]) -> Callable[[], R]:
    """Begin a function that waits for programs in a thread of its own; what is returned waits for its result.

    An error of the function is raised there.
    """
    results: list[R] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001 (it is raised again in the thread that asks)
            errors.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()

    def result() -> R:
        while thread.is_alive():
            thread.join(0.1)  # so that a signal is heard that comes just as the wait begins
        if errors:
            raise errors[0]
        return results[0]

    return result
