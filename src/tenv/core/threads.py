"""Run functions in threads without `concurrent.futures`, which takes 10 ms to load."""

from collections.abc import Callable, Iterable
from functools import partial
from threading import Semaphore, Thread
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_THREADS = 8  # concurrent programs: most of the time is waiting


def each(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return the function's result for each item, in order; several items use threads."""
    todo = list(items)
    if len(todo) < 2:  # noqa: PLR2004 (no concurrency needed)
        return [function(item) for item in todo]
    free = Semaphore(_THREADS)

    def one(item: T) -> R:
        with free:
            return function(item)

    return [result() for result in [ahead(partial(one, item)) for item in todo]]


def ahead(function: Callable[[], R]) -> Callable[[], R]:
    """Start a function in its own thread; the returned function waits for its result.

    An error of the function is raised by the returned function.
    """
    results: list[R] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001 (raised again in the waiting thread)
            errors.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()

    def result() -> R:
        while thread.is_alive():
            thread.join(0.1)  # so that a signal at the start of the wait is handled
        if errors:
            raise errors[0]
        return results[0]

    return result
