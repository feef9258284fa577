"""A thread that hears what a program says, from its start: a program waits where nobody reads."""

import threading
from collections.abc import Callable, Iterable

__all__ = ["Listener"]

_PATIENCE = 0.2
"""Seconds of one wait, so that a signal at its start is handled."""


class Listener:
    """What a program says, kept until somebody asks."""

    def __init__(self, said: Iterable[str], on_tick: Callable[[], None], end: Callable[[], None]) -> None:
        """Begin to hear.

        Args:
            said: Yields what is said as it comes, and an empty text now and then while nothing does.
            on_tick: Called whenever that yields. What it raises ends the program, and `follow` raises it.
            end: Ends the program.
        """
        from queue import SimpleQueue  # late: few programs are heard

        self._said, self._on_tick, self._end = said, on_tick, end
        self._fault: BaseException | None = None
        self._heard: SimpleQueue[str | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def follow(self, on_text: Callable[[str], None]) -> str:
        """Pass on what was and is said until the program ends, and return all of it."""
        from queue import Empty  # late: as above

        pieces: list[str] = []
        while True:
            try:
                plain = self._heard.get(timeout=_PATIENCE)
            except Empty:
                continue
            if plain is None:
                break
            pieces.append(plain)
            on_text(plain)
        if self._fault:
            raise self._fault
        return "".join(pieces)

    def has_ended(self) -> bool:
        """Wait a second at most, and return whether nobody speaks any more: what a program has started may go on."""
        self._thread.join(1)
        return not self._thread.is_alive()

    def _listen(self) -> None:
        try:
            for plain in self._said:
                self._on_tick()
                if plain:
                    self._heard.put(plain)
        except BaseException as error:  # noqa: BLE001 (raised again by `follow`)
            self._fault = error
            self._end()
        finally:
            self._heard.put(None)
